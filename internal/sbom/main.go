// Command sbom writes a bill of materials of this module to standard output, as CycloneDX 1.5 in JSON: every module that
// its packages and tests are built of, with the version that is used and the hash of go.sum. It asks no server.
//
//	go run ./internal/sbom >bin/sbom.json
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// module is what go list tells of one.
type module struct {
	Path, Version, Sum string
	Main               bool
	Replace            *module
}

func run(out io.Writer) error {
	list := exec.Command("go", "list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")
	list.Stderr = os.Stderr
	used, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	all := exec.Command("go", "list", "-m", "-json", "all")
	all.Stderr = os.Stderr
	text, err := all.Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	modules, err := modulesOf(text, strings.Fields(string(used)))
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(bill(modules))
}

// modulesOf reads the JSON values of go list, and keeps the modules that are used.
func modulesOf(text []byte, used []string) (out []module, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var m module
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list -m: %w", err)
		}
		if m.Replace != nil {
			m.Version, m.Sum = m.Replace.Version, m.Replace.Sum
		}
		if slices.Contains(used, m.Path) {
			out = append(out, m)
		}
	}
}

type (
	document struct {
		Format      string      `json:"bomFormat"`
		SpecVersion string      `json:"specVersion"`
		Version     int         `json:"version"`
		Metadata    metadata    `json:"metadata"`
		Components  []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		PURL    string `json:"purl"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
)

func bill(modules []module) document {
	doc := document{Format: "CycloneDX", SpecVersion: "1.5", Version: 1, Components: []component{}}
	for _, m := range modules {
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path}
		if m.Version != "" {
			c.PURL += "@" + m.Version
		}
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // of the files' hashes, as go.sum has it
			if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
				c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
			}
		}
		if m.Main {
			doc.Metadata.Component = c
			continue
		}
		doc.Components = append(doc.Components, c)
	}
	slices.SortFunc(doc.Components, func(a, b component) int { return strings.Compare(a.Name, b.Name) })
	return doc
}
