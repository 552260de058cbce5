package docs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/stretchr/testify/require"
)

// repo is the repository as the checks of its pages see it.
type repo struct {
	files  fs.FS
	tests  map[string]bool   // names of all tests, benchmarks and fuzz targets
	code   [][]string        // lines of each Go file
	source map[string]string // text of the Go files of each directory
	goals  map[string]bool   // targets of the Makefile
	names  map[string]bool   // exported names, of other modules too
}

var (
	testFunc   = regexp.MustCompile(`^func ((?:Test|Benchmark|Fuzz)\w*)\(`)
	goal       = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	notOurs    = []string{".git", "bin", "node_modules", "target"}
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile("^#+ +(.*)$")
	span       = regexp.MustCompile("`([^`]+)`")
	testName   = regexp.MustCompile(`(-run \^?)?\b((?:Test|Benchmark|Fuzz)[A-Z]\w*)(\*?)`)
	goCommand  = regexp.MustCompile(`\bgo (run|test|vet|build) (?:[^.]\S* )*(\./\S*)(.*)`)
	makeTarget = regexp.MustCompile(`^make ([a-z][a-z-]*)`)
	goFlag     = regexp.MustCompile(`(?:^| )-([a-z][a-z-]*)`)
	exported   = regexp.MustCompile(`\b[A-Z]\w*`)
	member     = regexp.MustCompile(`^[*&]?(?:[a-z]+\.)?([A-Z]\w*)\.([A-Z]\w*)\b`)
)

func read(files fs.FS) (*repo, error) {
	r := &repo{files: files, tests: map[string]bool{}, source: map[string]string{},
		goals: map[string]bool{}, names: map[string]bool{}}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(notOurs, d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		r.code = append(r.code, lines)
		r.source[path.Dir(name)] += string(text)
		for _, name := range exported.FindAllString(string(text), -1) {
			r.names[name] = true
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "func ") {
				continue
			}
			if m := testFunc.FindStringSubmatch(line); m != nil {
				r.tests[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Makefile", "lab/lab.mk"} {
		makefile, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for _, m := range goal.FindAllSubmatch(makefile, -1) {
			r.goals[string(m[1])] = true
		}
	}
	return r, nil
}

// check returns what is wrong with a page.
func (r *repo) check(page string) (wrong []string) {
	text, err := fs.ReadFile(r.files, page)
	if err != nil {
		return []string{err.Error()}
	}
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var fence string   // the language of the fence that is open, with its backticks
	var block []string // of Go
	for i, line := range strings.Split(string(text), "\n") {
		at := fmt.Sprintf("%s:%d: ", page, i+1)
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence, block = line, nil
		case fence != "" && line == "```":
			if fence == "```go" && !r.excerpt(block) {
				bad("%sthe Go block that ends here is in no Go file, line for line", at)
			}
			fence = ""
		case fence != "":
			block = append(block, line)
			r.command(line, func(s string) { bad("%s%s", at, s) })
		default:
			for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(line, ""), -1) {
				if err := r.target(page, m[1]); err != nil {
					bad("%slink %s: %v", at, m[1], err)
				}
			}
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				r.command(m[1], func(s string) { bad("%s%s", at, s) })
				f := member.FindStringSubmatch(m[1])
				if f != nil && !(r.names[f[1]] && r.names[f[2]]) {
					bad("%sno %s in any Go file", at, f[0])
				}
			}
			for _, m := range testName.FindAllStringSubmatch(line, -1) {
				if whole := m[1] == "" && m[3] == ""; !r.tests[m[2]] && (whole || !r.begins(m[2])) {
					bad("%sno test %s", at, m[2]+m[3])
				}
			}
		}
	}
	if fence != "" {
		bad("%s: a fence that does not end", page)
	}
	return wrong
}

// begins reports whether a test has a name that begins with prefix.
func (r *repo) begins(prefix string) bool {
	for name := range r.tests {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// excerpt reports whether the lines follow each other in a Go file, at any indentation.
func (r *repo) excerpt(block []string) bool {
	if len(block) == 0 {
		return false
	}
	for _, lines := range r.code {
	starts:
		for i := range lines {
			indent, ok := strings.CutSuffix(lines[i], block[0])
			if !ok || strings.Trim(indent, "\t") != "" || i+len(block) > len(lines) {
				continue
			}
			for j, want := range block {
				if want != "" {
					want = indent + want
				}
				if lines[i+j] != want {
					continue starts
				}
			}
			return true
		}
	}
	return false
}

// command checks the targets, packages, tests and flags that a line of a shell names.
func (r *repo) command(line string, bad func(string)) {
	line, _, _ = strings.Cut(strings.TrimPrefix(line, "$ "), " #")
	if m := makeTarget.FindStringSubmatch(line); m != nil && !r.goals[m[1]] {
		bad("no target " + m[1] + " in the Makefile")
	}
	m := goCommand.FindStringSubmatch(line) // the verb, the package, and what follows
	if m == nil {
		return
	}
	dir := path.Clean(strings.TrimSuffix(m[2], "..."))
	source := r.source[dir]
	if info, err := fs.Stat(r.files, dir); err != nil || !info.IsDir() ||
		source == "" && !strings.HasSuffix(m[2], "...") {
		bad("no package " + m[2])
		return
	}
	if m[1] == "run" {
		for _, f := range goFlag.FindAllStringSubmatch(m[3], -1) {
			if !strings.Contains(source, `"`+f[1]+`"`) {
				bad(m[2] + " has no flag -" + f[1])
			}
		}
	}
	for _, t := range testName.FindAllStringSubmatch(m[3], -1) {
		if !strings.Contains(source, "func "+t[2]) {
			bad(m[2] + " has no test " + t[2])
		}
	}
}

// target returns nil if a link from a page leads to a file or heading of the repository, or
// elsewhere.
func (r *repo) target(page, to string) error {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return nil
	}
	file, anchor, _ := strings.Cut(to, "#")
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	if _, err := fs.Stat(r.files, name); err != nil {
		return err
	}
	if anchor == "" {
		return nil
	}
	text, err := fs.ReadFile(r.files, name)
	if err != nil {
		return err
	}
	if !slices.Contains(anchors(string(text)), anchor) {
		return fmt.Errorf("%s has no heading %s", name, anchor)
	}
	return nil
}

// anchors are those that GitHub gives to the headings of a page.
func anchors(page string) (all []string) {
	seen := map[string]int{}
	fenced := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		m := heading.FindStringSubmatch(line)
		if fenced || m == nil {
			continue
		}
		a := strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
				return unicode.ToLower(c)
			}
			return -1
		}, link.ReplaceAllString(m[1], "]"))
		if n := seen[a]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", a, n))
		} else {
			all = append(all, a)
		}
		seen[a]++
	}
	return all
}

// TestPages_NameWhatExists holds for every page of the repository: its Go blocks are lines of
// compiled files, and its links, commands and tests exist.
func TestPages_NameWhatExists(t *testing.T) {
	r, err := read(os.DirFS(".."))
	require.NoError(t, err)
	require.NotEmpty(t, r.tests)
	require.NotEmpty(t, r.goals)
	var pages []string
	require.NoError(t, fs.WalkDir(r.files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && slices.Contains(notOurs, d.Name()):
			return fs.SkipDir
		case err == nil && path.Ext(name) == ".md":
			pages = append(pages, name)
		}
		return err
	}))
	require.Contains(t, pages, "README.md")
	for _, page := range pages {
		for _, wrong := range r.check(page) {
			t.Error(wrong)
		}
	}
}

// TestPages_TheIndexIsComplete: docs/README.md links every page beside it, and every example.
func TestPages_TheIndexIsComplete(t *testing.T) {
	index, err := os.ReadFile("README.md")
	require.NoError(t, err)
	pages, err := fs.Glob(os.DirFS("."), "*.md")
	require.NoError(t, err)
	for _, page := range pages {
		if page != "README.md" && !strings.Contains(string(index), "]("+page+")") {
			t.Errorf("docs/README.md has no link to %s", page)
		}
	}
	// snippets and manifests have none
	examples, err := fs.Glob(os.DirFS(".."), "examples/*/*_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, name := range examples {
		if dir := path.Dir(name); !strings.Contains(string(index), "](../"+dir+"/)") {
			t.Errorf("docs/README.md has no link to %s", dir)
		}
	}
}

// TestPages_EveryCheckFindsItsMistake makes each mistake once, in a page that is right otherwise.
func TestPages_EveryCheckFindsItsMistake(t *testing.T) {
	const right = "# A page: of `tests`\n\n## Twice\n\n## Twice\n\n" +
		"[here](#twice-1), [there](other.md#the-other), [away](https://example.org/x#y), [code](../examples/a/)\n\n" +
		"Held by `TestA_Holds`, `TestA_*`, set by `Config.Size`, `go test ./examples/a -run TestA_Holds` and `make all`.\n\n" +
		"```go\nif x {\n\n\ty()\n}\n```\n\n```\ngo run ./examples/a -kill b # runs it\nmake all\n```\n"
	files := map[string]string{
		"docs/other.md":           "# The other\n",
		"Makefile":                "all: x ## y\n",
		"lab/lab.mk":              "\n",
		"examples/a/main.go":      "package main\n\nfunc f() {\n\tif x {\n\n\t\ty()\n\t}\n}\n\nvar k = flag.String(\"kill\")\n\ntype Config struct{ Size int }\n",
		"examples/a/main_test.go": "package main\n\nfunc TestA_Holds(t *testing.T) {}\n",
	}
	for mistake, c := range map[string]struct{ from, to, want string }{
		"none": {"", "", ""},
		"another line": {"\ty()", "\tz()",
			"docs/page.md:16: the Go block that ends here is in no Go file, line for line"},
		"one line less": {"\n\ty()", "",
			"docs/page.md:15: the Go block that ends here is in no Go file, line for line"},
		"no such file": {"other.md", "another.md",
			"docs/page.md:7: link another.md#the-other: open docs/another.md: file does not exist"},
		"no such heading": {"#twice-1", "#twice-2",
			"docs/page.md:7: link #twice-2: docs/page.md has no heading twice-2"},
		"no heading there": {"#the-other", "#other",
			"docs/page.md:7: link other.md#other: docs/other.md has no heading other"},
		"no test begins so": {"-run TestA_Holds", "-run TestB",
			"docs/page.md:9: ./examples/a has no test TestB\ndocs/page.md:9: no test TestB"},
		"no such test": {"`TestA_Holds`", "`TestA_Hold`",
			"docs/page.md:9: no test TestA_Hold"},
		"no such tests": {"`TestA_*`", "`TestB_*`", "docs/page.md:9: no test TestB_*"},
		"no such field": {"Config.Size", "Config.Width",
			"docs/page.md:9: no Config.Width in any Go file"},
		"another package": {"test ./examples/a", "test ./examples/b",
			"docs/page.md:9: no package ./examples/b"},
		"no such package": {"run ./examples/a", "run ./examples/b",
			"docs/page.md:19: no package ./examples/b"},
		"no such flag": {"-kill", "-hit", "docs/page.md:19: ./examples/a has no flag -hit"},
		"no such target": {"\nmake all", "\nmake some",
			"docs/page.md:20: no target some in the Makefile"},
		"fence without end": {"make all\n```\n", "make all\n",
			"docs/page.md: a fence that does not end"},
		"no target in prose": {"`make all`", "`make some`",
			"docs/page.md:9: no target some in the Makefile"},
	} {
		t.Run(mistake, func(t *testing.T) {
			all := maps.Clone(files)
			all["docs/page.md"] = strings.Replace(right, c.from, c.to, 1)
			files := fstest.MapFS{}
			for name, text := range all {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
			r, err := read(files)
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Join(r.check("docs/page.md"), "\n"))
		})
	}
}
