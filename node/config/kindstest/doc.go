// Package kindstest tests configuration files with every provider and store that there is. It holds no code: the clients
// that these tests link would make those of package config slow to build.
package kindstest
