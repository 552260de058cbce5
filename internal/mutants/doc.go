// Mutants plants known bugs, one at a time, and demands that a named test notices each: a test that
// cannot fail proves nothing, and neither does one that nobody has ever seen fail for the right reason.
//
//	go run ./internal/mutants            # all of them; writes docs/mutants.md
//	go run ./internal/mutants -only ack  # those whose names match
//	go run ./internal/mutants -list      # plants nothing, only writes docs/mutants.md
//
// The tree is never touched: the compiler reads the changed file through an overlay. First every named
// test must pass without a bug. Then a bug counts as killed if its test fails or panics; a bug that
// does not compile, or whose place in the code is not found any more, is an error, so that the table
// cannot rot. A survivor means that a test is missing.
package main
