/** style - styles are imported for their effect; the build makes one file */
declare module '*.css'
