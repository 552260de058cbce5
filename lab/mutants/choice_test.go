package main

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

func TestChoice_GoesOnWhereTheLogEnds(t *testing.T) {
	all := []mutant{
		{name: "killed", files: []string{"node/a.go"}},
		{name: "survived", files: []string{"node/a.go"}},
		{name: "elsewhere", files: []string{"crdt/a.go"}},
		{name: "other name", files: []string{"node/a.go"}},
	}
	c := choice{names: "ed$|elsewhere", files: "^node/", log: filepath.Join(t.TempDir(), "log")}
	choose := func(want ...string) {
		t.Helper()
		chosen, err := c.of(all)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range chosen {
			got = append(got, m.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("chosen: %q, want %q", got, want)
		}
	}
	choose("killed", "survived")
	for _, line := range []string{verdict(all[0], "TestX", nil), verdict(all[1], "", errors.New("survived"))} {
		if err := c.note(line); err != nil {
			t.Fatal(err)
		}
	}
	choose("survived")
	c = choice{}
	choose("killed", "survived", "elsewhere", "other name")
}
