// Command inspect reads the directory in which a stopped member has kept its durable entries, with
// any of the stores.
//
//	go run ./examples/inspect list DIR      every entry, with its rows and bytes
//	go run ./examples/inspect verify DIR    whether all rows are as they were written; status 1 if not
//	go run ./examples/inspect export DIR    all rows as lines of JSON
//
// The key of an encrypted directory is read, in hexadecimal, from the environment variable
// CONCORD_KEY. The program opens a copy in the directory for temporary files, and writes nothing
// into DIR.
//
//	$ inspect list /var/lib/shop/ddata
//	cart                            2 atoms        47 bytes
//	views                           1 atoms        20 bytes
//	2 entries; 6 rows, 94 bytes, of which 3 rows are of no entry
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/concord-go/concord/distributeddata/inspect"
	"github.com/concord-go/concord/distributeddata/store"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:],
		os.Getenv("CONCORD_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, "inspect:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string, hexKey string) error {
	if len(args) != 2 {
		return errors.New("usage: inspect list|verify|export DIR")
	}
	does, known := map[string]func(context.Context, io.Writer, store.Store) error{
		"list": list, "verify": verify,
		"export": func(ctx context.Context, out io.Writer, s store.Store) error {
			return inspect.Export(ctx, s, out)
		},
	}[args[0]]
	if !known {
		return fmt.Errorf("%q is none of list, verify, export", args[0])
	}
	key, err := hex.DecodeString(hexKey)
	if err != nil {
		return fmt.Errorf("CONCORD_KEY: %w", err)
	}
	s, err := inspect.Open(args[1], key)
	if err != nil {
		return err
	}
	return errors.Join(does(ctx, out, s), s.Close())
}

func list(ctx context.Context, out io.Writer, s store.Store) error {
	r, err := inspect.Verify(ctx, s)
	if err != nil {
		return err
	}
	for _, e := range r.Entries {
		fmt.Fprintf(out, "%-28s %4d atoms %9d bytes\n", e.Key, e.Atoms, e.Bytes)
	}
	fmt.Fprintf(out, "%d entries; %d rows, %d bytes, of which %d rows are of no entry\n",
		len(r.Entries), r.Rows, r.Bytes, r.Other+r.Old+r.Unknown)
	return nil
}

func verify(ctx context.Context, out io.Writer, s store.Store) error {
	r, err := inspect.Verify(ctx, s)
	if err != nil {
		return err
	}
	for _, row := range r.Corrupt {
		fmt.Fprintf(out, "damaged: %s\n", row)
	}
	for _, why := range r.Missing {
		fmt.Fprintln(out, why)
	}
	fmt.Fprintf(out, "%d rows are as they were written\n", r.Rows)
	if !r.Sound() {
		return errors.New("the member will ask the others for what is missing")
	}
	return nil
}
