package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/concord-go/concord/distributeddata/inspect"
	rows "github.com/concord-go/concord/distributeddata/store"
)

// store reads the data directory of a stopped member, or makes one from an export.
func store(ctx context.Context, c *ctl, args []string) (err error) {
	key, err := hex.DecodeString(c.key)
	if err != nil {
		return fails(exitUsage, "CONCORD_KEY: %w", err)
	}
	switch {
	case args[0] == "import" && len(args) == 4:
		return importStore(ctx, c, args[1], args[2], args[3], key)
	case args[0] == "import":
		return fails(exitUsage, "usage: concordctl store import FILE DIR badger|bbolt")
	case len(args) != 2:
		return fails(exitUsage, "usage: concordctl store %s DIR", args[0])
	}
	does, known := map[string]func(context.Context, *ctl, rows.Store) error{"list": listStore,
		"verify": verifyStore, "export": exportStore}[args[0]]
	if !known {
		return fails(exitUsage, "unknown store command %q, must be list, verify, export or import",
			args[0])
	}
	s, err := inspect.Open(args[1], key)
	if errors.Is(err, rows.ErrForeign) {
		return fails(exitNone, "%w", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return does(ctx, c, s)
}

func listStore(ctx context.Context, c *ctl, s rows.Store) error {
	r, err := inspect.Verify(ctx, s)
	if err != nil {
		return err
	}
	err = list(c, r.Entries, false, []string{"+NAME", "-ATOMS", "-SIZE", "-DAMAGED"},
		func(e inspect.Entry) []string {
			return []string{e.Key, fmt.Sprint(e.Atoms), size(float64(e.Bytes)),
				fmt.Sprint(e.Corrupt)}
		})
	if err == nil && c.output == "table" {
		fmt.Fprintf(c.out, "%d entries; %d rows, %s\n", len(r.Entries), r.Rows,
			size(float64(r.Bytes)))
	}
	return err
}

func verifyStore(ctx context.Context, c *ctl, s rows.Store) error {
	r, err := inspect.Verify(ctx, s)
	if err != nil {
		return err
	}
	damaged, missing := []string{}, []string{}
	for _, row := range r.Corrupt {
		damaged = append(damaged, row.String())
	}
	for _, why := range r.Missing {
		missing = append(missing, why.Error())
	}
	if c.output == "json" {
		err = printJSON(c.out, map[string]any{"sound": r.Sound(), "rows": r.Rows, "bytes": r.Bytes,
			"damaged": damaged, "missing": missing})
	} else {
		for _, d := range damaged {
			wrap(c.out, "damaged: ", "         ", d)
		}
		for _, m := range missing {
			wrap(c.out, "missing: ", "         ", m)
		}
		fmt.Fprintf(c.out, "%d rows are intact\n", r.Rows)
	}
	if err == nil && !r.Sound() {
		return fails(exitWrong,
			"the directory is damaged; the member will fetch the missing data from other members")
	}
	return err
}

// exportStore writes lines of JSON, regardless of -o.
func exportStore(ctx context.Context, c *ctl, s rows.Store) error {
	return inspect.Export(ctx, s, c.out)
}

// importStore makes a new directory from an export.
func importStore(ctx context.Context, c *ctl, file, dir, kind string, key []byte) error {
	from, err := os.Open(file)
	if err != nil {
		return fails(exitNone, "%w", err)
	}
	defer func() { _ = from.Close() }() // it was read only
	n, err := inspect.Import(ctx, from, dir, kind, key)
	if errors.Is(err, rows.ErrInvalid) {
		return fails(exitInvalid, "nothing was done: %s: %w", file, err)
	}
	if err != nil {
		return err
	}
	if c.output == "json" {
		return printJSON(c.out, map[string]any{"rows": n, "directory": dir, "kind": kind})
	}
	wrap(c.out, "", "", fmt.Sprintf("%d rows were imported into %s and read back.", n, dir))
	return nil
}
