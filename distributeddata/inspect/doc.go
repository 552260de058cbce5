// Package inspect looks into the directory of a member that is stopped: what entries it holds, how large they are, whether
// every row is as it was written, and all rows as JSON.
//
//	rows, err := inspect.Open("/var/lib/shop/ddata", nil)
//	…
//	defer rows.Close()
//	report, err := inspect.Verify(ctx, rows)
//
// Open opens the directory as the member would: it replays the log of a process that was killed, and deletes
// nothing. Of a directory that is damaged, or is evidence, inspect a copy. A member that runs has its directory locked.
//
// An entry is kept as a row for each of its atoms, so that a change of a large value writes what it changed; what an atom
// says is for the type of the value to read, which the directory does not know. Program examples/inspect is a command
// line over this package.
package inspect
