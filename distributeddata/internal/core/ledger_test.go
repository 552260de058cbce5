package core

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// audit recomputes what the ledger maintains along with its keys and its vector.
func (l *ledger) audit() error {
	sum, marks := Sum{}, l.marks
	for key, h := range l.keys.All() {
		for path, e := range h.Prefix("") {
			sum = sum.plus(entrySum(key, path, e))
		}
		if _, noted := l.marks.Get(key); noted != h.HasMarks() {
			return fmt.Errorf("key %q: has marks: %v, noted: %v", key, h.HasMarks(), noted)
		}
		marks = marks.Delete(key)
	}
	size := 0
	for d := range l.seen.All() {
		o := l.log.origins[d.Replica]
		switch {
		case o != nil && o.floor+uint64(len(o.events)) != d.N:
			return fmt.Errorf("log of %v: %d events from %d on, seen %d", d.Replica, len(o.events),
				o.floor, d.N)
		case o == nil && l.log.floor.Get(d.Replica) != d.N:
			return fmt.Errorf("log of %v: floor %d, seen %d", d.Replica, l.log.floor.Get(d.Replica),
				d.N)
		case o != nil:
			size += o.size
		}
	}
	if sum != l.sum || marks.Len() > 0 || size != l.log.size {
		return fmt.Errorf("fingerprint %x of %x, %d marks of keys that are not there, log of %d bytes of %d", l.sum, sum, marks.Len(), l.log.size, size)
	}
	return nil
}

// Only ledger.go changes the ledger, so that everything that depends on a change is tied to one
// place.
func TestLedger_ChangesByItsTransitionsAlone(t *testing.T) {
	require.Empty(t, trespasses(t, ""))
}

// The check must be able to see a violation.
func TestLedger_TrespassesAreSeen(t *testing.T) {
	for _, statement := range []string{
		"c.seen = c.seen.With(causal.Dot{})", "c.ledger.sum = Sum{}", "c.sum[0]++",
		"c.ledger = ledger{}", "p := &c.keys; _ = p",
		"c.seen, c.nextID = causal.Vector{}, 3", "c.log.add(event{})", "c.log.size = 0",
		"c.install(c.draft(0), c.seen)", "c.me = 4",
		"add := c.log.add; add(event{})", "for _, c.sum[0] = range []uint64{1} {\n\t}", "(*c).me++",
		"clear(c.log.origins)",
	} {
		found := trespasses(t, "package core\n\nfunc (c *Core) trespass() {\n\t"+statement+"\n}\n")
		require.NotEmpty(t, found, statement)
		require.True(t, strings.HasPrefix(found[0], "trespass.go:4:"), found[0])
	}
}

// open lists the methods of the ledger and its log that other files may call: readers and
// transitions.
var open = map[string][]string{
	"eventLog": {"from"},
	"ledger": {
		"state", "makeDelta", "fill",
		"commit", "apply", "join", "replace", "dropMarks", "trim", "correct", "takeOver",
		"restore", "reach",
	},
}

// trespasses lists the places where files other than ledger.go change the ledger. more may name an
// additional file. Types of other packages are not resolved: fields and methods of this package are
// known without them.
func trespasses(t *testing.T, more string) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	read := func(name string, src any) {
		f, err := parser.ParseFile(fset, name, src, 0)
		require.NoError(t, err)
		files = append(files, f)
	}
	names, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, n := range names {
		if strings.HasSuffix(n.Name(), ".go") && !strings.HasSuffix(n.Name(), "_test.go") {
			read(n.Name(), nil)
		}
	}
	if more != "" {
		read("trespass.go", more)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	cfg := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := cfg.Check("core", fset, files, info)
	g := newGuard(pkg, info)
	for _, f := range files {
		if fset.Position(f.Pos()).Filename == "ledger.go" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if what := g.trespass(n); what != "" {
				found = append(found, fset.Position(n.Pos()).String()+": "+what)
			}
			return true
		})
	}
	return found
}

// nothing is an importer of empty packages.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	p.MarkComplete()
	return p, nil
}

// guard knows the fields and methods of the ledger.
type guard struct {
	info   *types.Info
	fields map[types.Object]bool
	closed map[types.Object]string // methods, with the type that they belong to
}

func newGuard(pkg *types.Package, info *types.Info) guard {
	g := guard{info, map[types.Object]bool{}, map[types.Object]string{}}
	embedded, _, _ := types.LookupFieldOrMethod(pkg.Scope().Lookup("Core").Type(), true, pkg,
		"ledger")
	g.fields[embedded] = true
	fields := pkg.Scope().Lookup("ledger").Type().Underlying().(*types.Struct)
	for f := range fields.Fields() {
		g.fields[f] = true
	}
	for name, allowed := range open {
		of := pkg.Scope().Lookup(name).Type().(*types.Named)
		for m := range of.Methods() {
			if !slices.Contains(allowed, m.Name()) {
				g.closed[m] = name
			}
		}
	}
	return g
}

// trespass says what is wrong with a node, or returns "".
func (g guard) trespass(n ast.Node) string {
	var targets []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		targets = n.Lhs
	case *ast.RangeStmt:
		targets = []ast.Expr{n.Key, n.Value}
	case *ast.IncDecStmt:
		targets = []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			targets = []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "clear" || f.Name == "delete") {
			targets = n.Args[:1]
		}
	case *ast.SelectorExpr:
		s := g.info.Selections[n]
		if s == nil || s.Kind() != types.MethodVal {
			break
		}
		// The log may call its own methods.
		if of := g.closed[s.Obj()]; of == "ledger" || of != "" && g.part(n.X) {
			return "calls " + n.Sel.Name + " of the " + of
		}
	}
	if slices.ContainsFunc(targets, g.part) {
		return "changes a part of the ledger"
	}
	return ""
}

// part reports whether x is the ledger, or a part of it.
func (g guard) part(x ast.Expr) bool {
	for {
		switch e := x.(type) {
		case *ast.IndexExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.ParenExpr:
			x = e.X
		case *ast.SelectorExpr:
			s := g.info.Selections[e]
			switch {
			case s == nil:
				return false
			case s.Kind() == types.FieldVal && g.fields[s.Obj()]:
				return true
			}
			x = e.X
		default:
			return false
		}
	}
}
