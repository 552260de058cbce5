// Package failuretest contains only tests of package testkit that must fail, and of what they
// print.
package failuretest
