// Command sbom writes a bill of materials of the module in the current directory to standard
// output, as CycloneDX 1.5 in JSON: every module used by its packages and tests, with its version
// and its hash from go.sum. It reads the module's own go.mod, not go.work, and contacts no server.
// A module of this repository has no hash, since it is replaced by a directory.
//
//	make sbom
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
	if err := run(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// module is the output of go list for one module.
type module struct {
	Path, Version, Sum string
	Main               bool
	Replace            *module
}

// run describes the module in dir.
func run(out io.Writer, dir string) error {
	used, err := list(dir, "-deps", "-test", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")
	if err != nil {
		return err
	}
	text, err := list(dir, "-m", "-json", "all")
	if err != nil {
		return err
	}
	modules, err := modulesOf(text, strings.Fields(string(used)))
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(bill(modules))
}

// list returns the output of go list in dir, outside the workspace.
func list(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// modulesOf parses the JSON output of go list, and keeps the modules that are used.
func modulesOf(text []byte, used []string) (out []module, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var m module
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list -m: %w", err)
		}
		if m.Replace != nil && m.Replace.Version != "" { // not by a directory
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
		c := component{Type: "library", Name: m.Path, Version: m.Version,
			PURL: "pkg:golang/" + m.Path}
		if m.Version != "" {
			c.PURL += "@" + m.Version
		}
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // the hash of the files, as in go.sum
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
	slices.SortFunc(doc.Components, func(a, b component) int {
		return strings.Compare(a.Name, b.Name)
	})
	return doc
}
