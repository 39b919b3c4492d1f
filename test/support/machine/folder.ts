/** folder - runs the test files that are named after it, one after another, in this one process. */
for (const path of process.argv.slice(2)) await import(path)
