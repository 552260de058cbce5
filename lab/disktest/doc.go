// Package disktest contains only the tests of the durable stores on real disks: power cuts, damage,
// a full file system, kill -9, and the golden directories of every format. A sample of each runs
// with the other tests; make soak-disk runs the full number.
package disktest
