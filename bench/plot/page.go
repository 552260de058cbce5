package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// page has the tables.
const page = "docs/performance.md"

// tables returns the table of a file of bench/results in Markdown.
var tables = map[string]func(file string) (string, error){
	"peers.txt":          peersTable,
	"peers-keys.txt":     keysTable,
	"peers-sharding.txt": shardsTable,
	"merges.txt":         mergesTable,
}

var errNoMarks = errors.New("the marks of the table are missing")

// withTable returns a page with the table of a file of results between its marks.
func withTable(text []byte, file, table string) ([]byte, error) {
	begin := fmt.Appendf(nil, "<!-- bench/plot writes the lines from here to the end mark from bench/results/%s -->\n", file)
	end := []byte("<!-- end -->\n")
	before, rest, ok := bytes.Cut(text, begin)
	_, after, ends := bytes.Cut(rest, end)
	if !ok || !ends {
		return nil, fmt.Errorf("%s: %w: %q and %q", page, errNoMarks, begin, end)
	}
	return bytes.Join([][]byte{before, begin, []byte(table), end, after}, nil), nil
}

// withTables returns the page of the module at root with the tables of its results.
func withTables(root string) (text []byte, err error) {
	if text, err = os.ReadFile(filepath.Join(root, page)); err != nil {
		return nil, err
	}
	for file, makeTable := range tables {
		table, err := makeTable(filepath.Join(root, "bench/results", file))
		if err != nil {
			return nil, err
		}
		if text, err = withTable(text, file, table); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// writePage puts the tables into the page.
func writePage() error {
	text, err := withTables(".")
	if err != nil {
		return err
	}
	return os.WriteFile(page, text, 0o644)
}
