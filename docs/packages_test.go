package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutExample lists the packages that need none: generated code.
var withoutExample = []string{"proto"}

var reference = regexp.MustCompile(`\b(?:docs/[a-z-]+\.md|examples/[a-z]+)\b`)

// TestPages_EveryPackageHasThem: the comment of each public package names a guide or an example
// that exists, and the package has an Example.
func TestPages_EveryPackageHasThem(t *testing.T) {
	files := os.DirFS("..")
	code := map[string][]*ast.File{} // by package; those of tests last
	examples := map[string]bool{}
	require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(notOurs, d.Name()) || d.Name() == "internal" ||
			d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") {
			examples[dir] = examples[dir] || strings.Contains(string(text), "\nfunc Example")
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		code[dir] = append(code[dir], f)
		return err
	}))
	checked := 0
	for dir, all := range code {
		comment, exports := "", false
		for _, f := range all {
			comment += f.Doc.Text()
			exports = exports || ast.FileExports(f)
		}
		if all[0].Name.Name == "main" || !exports || strings.HasPrefix(dir, "examples/") {
			continue // a program, or tests only
		}
		checked++
		named := reference.FindAllString(comment, -1)
		if len(named) == 0 && dir != "proto" {
			t.Errorf("the comment of package %s names no guide and no example", dir)
		}
		for _, name := range named {
			if _, err := fs.Stat(files, name); err != nil {
				t.Errorf("the comment of package %s: %v", dir, err)
			}
		}
		if !examples[dir] && !slices.Contains(withoutExample, dir) {
			t.Errorf("package %s has no Example", dir)
		}
	}
	require.Greater(t, checked, 30)
}
