// Package clustertest contains only tests of package testkit/clustertest: a provider that obeys all
// rules, and planted faults that its suite must detect.
package clustertest
