package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// lab plants bugs in one module.
type lab struct {
	root string // of the module
	dir  string // for changed files
}

func newLab(ctx context.Context, dir string) (*lab, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return &lab{root: filepath.Dir(strings.TrimSpace(string(mod))), dir: dir}, nil
}

func (l *lab) path(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

var (
	errSurvived = errors.New("survived, a test is missing")
	errBroken   = errors.New("does not compile")
)

// withoutBugs checks that every killer passes on the unmodified code. It links the tests of each
// package once.
func (l *lab) withoutBugs(ctx context.Context, out io.Writer, all []mutant, workers int) error {
	var killers []killer
	var pkgs []string
	seen, known := map[killer]bool{}, map[string]bool{}
	for _, m := range all {
		if !known[m.killer.pkg] {
			known[m.killer.pkg] = true
			pkgs = append(pkgs, m.killer.pkg)
		}
		if !seen[m.killer] {
			seen[m.killer] = true
			killers = append(killers, m.killer)
		}
	}
	fmt.Fprintf(out, "%d bugs, %d tests\n", len(all), len(killers))
	failed := make([]error, len(pkgs))
	each(workers, len(pkgs), func(i int) {
		if output, err := l.command(ctx, l.root, "go", "test", "-c", "-tags=long", "-vet=off", "-ldflags=-s -w",
			"-o", l.binary(pkgs[i]), pkgs[i]); err != nil {
			failed[i] = fmt.Errorf("%s does not build:\n%s", pkgs[i], tail(output))
		}
	})
	if err := errors.Join(failed...); err != nil {
		return err
	}
	failed = make([]error, len(killers))
	each(workers, len(killers), func(i int) { failed[i] = l.passes(ctx, killers[i]) })
	return errors.Join(failed...)
}

// binary is the file of the linked tests of a package.
func (l *lab) binary(pkg string) string {
	return filepath.Join(l.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// passes returns nil if a killer passes on the unmodified code.
func (l *lab) passes(ctx context.Context, k killer) error {
	args := append([]string{"-test.timeout=400s", "-test.run=" + k.run}, k.flags()...)
	switch output, err := l.command(ctx, l.path(k.pkg), l.binary(k.pkg), args...); {
	case err != nil:
		return fmt.Errorf("%s -run %q fails without a bug:\n%s", k.pkg, k.run, tail(output))
	case strings.Contains(output, "no tests to run"):
		return fmt.Errorf("%s has no test %q", k.pkg, k.run)
	}
	return nil
}

// plant runs the killer of one bug and returns the test that detected it.
func (l *lab) plant(ctx context.Context, i int, m mutant) (test string, err error) {
	overlay, err := l.overlay(i, m)
	if err != nil {
		return "", err
	}
	output, err := l.test(ctx, m.killer, "-overlay="+overlay)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", errSurvived
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		return "", fmt.Errorf("%w:\n%s", errBroken, tail(output))
	}
	return noticed(output, m.killer), nil
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// noticed returns the innermost test that failed, or k.run if none is named, as after a panic.
func noticed(output string, k killer) string {
	name := k.run
	for _, m := range failure.FindAllStringSubmatch(output, -1) {
		if name == k.run || strings.HasPrefix(m[1], name+"/") {
			name = m[1]
		}
	}
	return name
}

// overlay writes the changed files and the overlay file for the compiler.
func (l *lab) overlay(i int, m mutant) (string, error) {
	changed, err := l.mutated(m)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range changed {
		to := filepath.Join(l.dir, fmt.Sprintf("%d-%s", i, strings.ReplaceAll(name, "/", "-")))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[l.path(name)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	to := filepath.Join(l.dir, fmt.Sprintf("%d.json", i))
	return to, os.WriteFile(to, list, 0o600)
}

// find sets the files of the edits.
func (l *lab) find(all []mutant) error {
	below := map[string]map[string]string{}
	var errs []error
	for i := range all {
		for _, e := range all[i].edits {
			if below[e.dir] == nil {
				texts, err := l.sources(e.dir)
				if err != nil {
					return err
				}
				below[e.dir] = texts
			}
			n, file := 0, ""
			for name, text := range below[e.dir] {
				if found := strings.Count(text, e.old); found > 0 {
					n, file = n+found, name
				}
			}
			if n != 1 {
				errs = append(errs, fmt.Errorf("bug %q: the text to replace occurs %d times below %s, must be once:\n%s", all[i].name, n, e.dir, e.old))
			}
			all[i].files = append(all[i].files, file)
		}
	}
	return errors.Join(errs...)
}

// sources returns the texts of the Go files below a directory that are no tests.
func (l *lab) sources(dir string) (map[string]string, error) {
	texts := map[string]string{}
	return texts, fs.WalkDir(os.DirFS(l.root), dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		data, err := os.ReadFile(l.path(name))
		texts[name] = string(data)
		return err
	})
}

// mutated returns the text of each changed file.
func (l *lab) mutated(m mutant) (map[string]string, error) {
	out := map[string]string{}
	for i, e := range m.edits {
		file := m.files[i]
		text, ok := out[file]
		if !ok {
			data, err := os.ReadFile(l.path(file))
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		out[file] = strings.Replace(text, e.old, e.new, 1)
	}
	return out, nil
}

// test runs a killer. Vet is off, since it could report the planted bug.
func (l *lab) test(ctx context.Context, k killer, flags ...string) (output string, err error) {
	args := append([]string{"test", "-tags=long", "-vet=off", "-timeout=400s", "-run=" + k.run}, flags...)
	args = append(args, k.pkg)
	if own := k.flags(); len(own) > 0 {
		args = append(append(args, "-args"), own...)
	}
	return l.command(ctx, l.root, "go", args...)
}

// command returns what a program prints.
func (l *lab) command(ctx context.Context, dir, name string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	data, err := cmd.CombinedOutput()
	return string(data), err
}

func tail(output string) string {
	const most = 2000
	return output[max(0, len(output)-most):]
}
