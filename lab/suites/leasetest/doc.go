// Package leasetest contains only tests of package testkit/leasetest: stores with planted bugs,
// which its suite must detect.
package leasetest
