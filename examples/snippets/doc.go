// Package snippets holds the Go code of README.md and docs/*.md, so that it is compiled. The test
// in docs/ compares the blocks of these pages with the lines of these files. Nothing here is run.
package snippets
