// Mutants plants known bugs, one at a time, and requires that a named test detects each of them: a
// test that cannot fail proves nothing, and neither does one that has never been seen to fail for
// the right reason.
//
//	go run ./lab/mutants            # all of them
//	go run ./lab/mutants -only ack  # those whose names match
//	go run ./lab/mutants -in ^node/ # those planted in these files
//	go run ./lab/mutants -log FILE  # goes on where a run that wrote FILE ended
//	go run ./lab/mutants -check     # runs no test, only type-checks each changed package
//	go run ./lab/mutants -list      # plants nothing, prints them as a table
//
// The source tree is not modified: the compiler reads the changed file through an overlay. First
// each bug must compile, and every named test must pass without a bug. Then a bug counts as killed
// if its test fails or panics. A bug that does not compile, or whose place in the code is no longer
// found, is an error, so that the table stays up to date. A surviving bug means that a test is
// missing.
package main
