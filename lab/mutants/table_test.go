package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTable_FitsTheCode finds a bug whose place in the code has changed, before the nightly run
// does.
func TestTable_FitsTheCode(t *testing.T) {
	l := &lab{root: "../.."}
	names := map[string]bool{}
	all, tests := table(), map[string][]string{}
	if err := l.find(all); err != nil {
		t.Errorf("%v\nadapt lab/mutants to the new code", err)
	}
	for _, m := range all {
		if names[m.name] || m.name == "" || m.rule == "" || m.killer.run == "" {
			t.Errorf("incomplete, or twice: %+v", m)
		}
		pkg := m.killer.pkg
		if tests[pkg] == nil {
			tests[pkg] = testsOf(t, l.path(pkg))
		}
		run, _, _ := strings.Cut(m.killer.run, "/")
		if !slices.ContainsFunc(tests[pkg], regexp.MustCompile(run).MatchString) {
			t.Errorf("%s: %s has no test %s", m.name, pkg, run)
		}
		names[m.name] = true
	}
	if len(names) < 20 {
		t.Errorf("only %d bugs", len(names))
	}
}

// testsOf returns the names of the tests in a directory.
func testsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

var testFunc = regexp.MustCompile(`(?m)^func ((Test|Fuzz|Example)\w*)\(`)

func TestList_HasARowForEachBug(t *testing.T) {
	all := table()
	if err := (&lab{root: "../.."}).find(all); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(markdown(all), "\n"); got != len(all)+2 {
		t.Errorf("%d lines for %d bugs", got, len(all))
	}
}

func TestFind_TextMustOccurOnce(t *testing.T) {
	l := &lab{root: "../.."}
	for _, text := range []string{"no such text", "e"} {
		if err := l.find([]mutant{{edits: in("lab/mutants", text, "x")}}); err == nil {
			t.Errorf("%q was replaced", text)
		}
	}
}

func TestNoticed_NamesTheInnermost(t *testing.T) {
	output := strings.Join([]string{"--- FAIL: TestGolden (0.01s)", "    --- FAIL: TestGolden/loss (0.00s)", "FAIL"}, "\n")
	if got := noticed(output, killer{run: "TestGolden/x"}); got != "TestGolden/loss" {
		t.Errorf("got %s", got)
	}
	if got := noticed("panic: oops", killer{run: "TestX"}); got != "TestX" {
		t.Errorf("got %s", got)
	}
}
