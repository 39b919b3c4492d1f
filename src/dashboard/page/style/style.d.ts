/** style - styles are imported for what they do to the page: the build makes one file of them */
declare module '*.css'
