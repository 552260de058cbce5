// Package childtest contains only tests of package internal/child, which starts processes.
package childtest
