package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// page has the tables that users read; the others are beside their results.
const (
	page       = "docs/performance.md"
	shardsPage = "lab/bench/results/peers-sharding.md"
	keysPage   = "lab/bench/results/peers-keys.md"
	mergesPage = "lab/bench/results/merges.md"
)

// pages lists, by page, the functions that return the table of a file of lab/bench/results in
// Markdown.
var pages = map[string]map[string]func(file string) (string, error){
	page:       {"peers.txt": peersTable},
	shardsPage: {"peers-sharding.txt": shardsTable},
	keysPage:   {"peers-keys.txt": keysTable},
	mergesPage: {"merges.txt": mergesTable},
}

var errNoMarks = errors.New("the marks of the table are missing")

// withTable returns a page with the table of a file of results between its marks.
func withTable(text []byte, file, table string) ([]byte, error) {
	begin := fmt.Appendf(nil, "<!-- lab/bench/plot writes the lines from here to the end mark from lab/bench/results/%s -->\n", file)
	end := []byte("<!-- end -->\n")
	before, rest, ok := bytes.Cut(text, begin)
	_, after, ends := bytes.Cut(rest, end)
	if !ok || !ends {
		return nil, fmt.Errorf("%w: %q and %q", errNoMarks, begin, end)
	}
	return bytes.Join([][]byte{before, begin, []byte(table), end, after}, nil), nil
}

// withTables returns a page of the module at root with the tables of its results.
func withTables(root, page string) (text []byte, err error) {
	if text, err = os.ReadFile(filepath.Join(root, page)); err != nil {
		return nil, err
	}
	for file, makeTable := range pages[page] {
		table, err := makeTable(filepath.Join(root, "lab/bench/results", file))
		if err != nil {
			return nil, err
		}
		if text, err = withTable(text, file, table); err != nil {
			return nil, fmt.Errorf("%s: %w", page, err)
		}
	}
	return text, nil
}

// writePages puts the tables into the pages.
func writePages() error {
	for page := range pages {
		text, err := withTables(".", page)
		if err != nil {
			return err
		}
		if err := os.WriteFile(page, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
