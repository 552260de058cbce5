// Package filetest contains only tests of package coordination/file: processes that share a
// directory of leases, and are killed and stopped.
package filetest
