// Package inspect examines the directory of a stopped member: which entries it holds, how large
// they are, whether every row is as it was written, and all rows as JSON, which Import brings back.
//
//	rows, err := inspect.Open("/var/lib/shop/ddata", nil)
//	…
//	defer rows.Close()
//	report, err := inspect.Verify(ctx, rows)
//
// Open copies the directory into one for this user in os.TempDir, and opens the copy as the member
// would: it replays the log of a process that was killed. It writes nothing into the directory, so
// any user may inspect it that may read it, and a damage is reported each time. Close deletes the
// copy. A running member has its directory locked.
//
// An entry is stored as one row per atom, so that a change of a large value writes only what it
// changed. Only the type of the value can interpret an atom, and the directory does not know it.
// Program concordctl is a command line over this package; see docs/cockpit.md and
// docs/durability.md.
package inspect
