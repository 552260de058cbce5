package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
)

// checker type-checks packages with planted bugs. It reads the packages that they import from the
// compiler's export data.
type checker struct {
	lab      *lab
	fset     *token.FileSet
	importer types.Importer
	packages map[string]*listed // by directory, as in edit
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string

	files []*ast.File // in the order of GoFiles
}

// check reports the bugs that do not compile.
func (l *lab) check(ctx context.Context, all []mutant) error {
	c, err := l.newChecker(ctx, all)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range all {
		if err := c.check(m); err != nil {
			errs = append(errs, fmt.Errorf("bug %q %w: %w", m.name, errBroken, err))
		}
	}
	return errors.Join(errs...)
}

// newChecker lists the packages of the bugs and compiles what they import.
func (l *lab) newChecker(ctx context.Context, all []mutant) (*checker, error) {
	dirs := map[string]bool{}
	for _, m := range all {
		for _, file := range m.files {
			dirs["./"+path.Dir(file)] = true
		}
	}
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"},
		slices.Sorted(maps.Keys(dirs))...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = l.root, os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	c := &checker{lab: l, fset: token.NewFileSet(), packages: map[string]*listed{}}
	exports := map[string]string{}
	for in := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(l.root, p.Dir); err == nil {
			c.packages[filepath.ToSlash(dir)] = &p
		}
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	return c, nil
}

// check type-checks the packages that a bug changes.
func (c *checker) check(m mutant) error {
	changed, err := c.lab.mutated(m)
	if err != nil {
		return err
	}
	changes := map[string]map[string]string{} // of each directory
	for name, text := range changed {
		dir, file := path.Split(name)
		dir = path.Clean(dir)
		if changes[dir] == nil {
			changes[dir] = map[string]string{}
		}
		changes[dir][file] = text
	}
	for dir, texts := range changes {
		if err := c.typeCheck(c.packages[dir], texts); err != nil {
			return err
		}
	}
	return nil
}

// typeCheck type-checks a package, some of whose files have another text.
func (c *checker) typeCheck(p *listed, texts map[string]string) error {
	if p.files == nil {
		for _, name := range p.GoFiles {
			f, err := c.parse(p, name, nil)
			if err != nil {
				return err
			}
			p.files = append(p.files, f)
		}
	}
	files := slices.Clone(p.files)
	for name, text := range texts {
		f, err := c.parse(p, name, text)
		if err != nil {
			return err
		}
		files[slices.Index(p.GoFiles, name)] = f
	}
	config := types.Config{Importer: c.importer}
	_, err := config.Check(p.ImportPath, c.fset, files, nil)
	return err
}

func (c *checker) parse(p *listed, name string, text any) (*ast.File, error) {
	return parser.ParseFile(c.fset, filepath.Join(p.Dir, name), text, parser.SkipObjectResolution)
}
