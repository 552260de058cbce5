package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// command matches a command that, according to a page, runs the test of a promise.
var command = regexp.MustCompile("`go test (\\./[^` ]+) -run ([^` ]+)`")

// A promise without its test is void.
func TestSecurity_NamesTestsThatExist(t *testing.T) { namesTests(t, "SECURITY.md", 20) }

func TestGuarantees_NamesTestsThatExist(t *testing.T) { namesTests(t, "docs/guarantees.md", 40) }

// namesTests asserts that a document contains at least the given number of commands and that each
// matches tests.
func namesTests(t *testing.T, path string, least int) {
	t.Helper()
	l := &lab{root: "../.."}
	doc, err := os.ReadFile(l.path(path))
	if err != nil {
		t.Fatal(err)
	}
	all := command.FindAllStringSubmatch(string(doc), -1)
	if len(all) < least {
		t.Errorf("only %d commands were understood", len(all))
	}
	for _, c := range all {
		if !strings.Contains(source(t, l, c[1]), "func "+c[2]+"(t *testing.T)") {
			t.Errorf("%s has no test %s", c[1], c[2])
		}
	}
}

// source is the text of all files of a package.
func source(t *testing.T, l *lab, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(l.path(pkg + "/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no package %s: %v", pkg, err)
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}
