// Package kindstest tests configuration files with every provider and store. It contains only
// tests: they link clients that would make the tests of package config slow to build.
package kindstest
