// Package childtest contains only tests of packages internal/child, which starts processes, and
// internal/ports.
package childtest
