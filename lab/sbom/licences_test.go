package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// licences are the accepted ones, each by a sentence that only it has.
var licences = map[string]string{
	"Apache": "Apache License",
	"BSD":    "Redistribution and use in source and binary forms",
	"MIT":    "Permission is hereby granted, free of charge",
	"MPL":    "Mozilla Public License",
	"ISC":    "Permission to use, copy, modify, and/or distribute this software",
}

// TestLicences_OfLinkedModulesArePermissive reads the licences of all modules whose packages are
// linked into programs of this repository, those of the nested modules included.
func TestLicences_OfLinkedModulesArePermissive(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "work").Output()
	require.NoError(t, err)
	modules := strings.Fields(string(out))
	seen, under := map[string]int{}, map[string]int{}
	for pair := range slices.Chunk(modules, 2) {
		if seen[pair[0]]++; seen[pair[0]] > 1 {
			continue
		}
		files, err := filepath.Glob(filepath.Join(pair[1], "[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]*"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "%s has no licence", pair[0])
		licence := licenceIn(t, files)
		require.NotEmpty(t, licence, "%s has another licence: %v", pair[0], files)
		under[licence]++
	}
	t.Log(under)
	require.Greater(t, len(seen), 30)
}

// licenceIn returns the name of an accepted licence that is in one of the files, or "".
func licenceIn(t *testing.T, files []string) string {
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		words := strings.Join(strings.Fields(string(text)), " ")
		for name, sentence := range licences {
			if strings.Contains(words, sentence) {
				return name
			}
		}
	}
	return ""
}
