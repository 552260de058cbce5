package kindstest

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/postgres"
	"github.com/concord-go/concord/coordination/zookeeper"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	providersetcd "github.com/concord-go/concord/node/provider/etcd"
	providerskubernetes "github.com/concord-go/concord/node/provider/kubernetes"
	providerszookeeper "github.com/concord-go/concord/node/provider/zookeeper"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

var write = flag.Bool("write", false, "write the tables of docs/configuration.md")

const page = "../../docs/configuration.md"

// tables lists the sections of the page, with the types decoded for them.
var tables = []struct {
	section string
	of      reflect.Type
}{
	{"node", reflect.TypeFor[node.RunConfig]()},
	{"leases", reflect.TypeFor[leaseconfig.Section]()},
	{"replicators", reflect.TypeFor[distributeddata.Config]()},
	{"singletons", reflect.TypeFor[singleton.Config]()},
	{"sharding", reflect.TypeFor[sharding.Config]()},
	{"provider automanaged", reflect.TypeFor[automanaged.Config]()},
	{"provider etcd", decoded(providersetcd.Configured)},
	{"provider kubernetes", reflect.TypeFor[providerskubernetes.Config]()},
	{"provider zookeeper", decoded(providerszookeeper.Configured)},
	{"lease-class file", decoded(file.Opener)},
	{"lease-class etcd", decoded(etcd.Opener)},
	{"lease-class postgres", decoded(postgres.Opener)},
	{"lease-class kubernetes", reflect.TypeFor[kubernetes.Config]()},
	{"lease-class zookeeper", decoded(zookeeper.Opener)},
	{"lease-class azureblob", decoded(azureblob.Opener)},
	{"store bbolt", decoded(bbolt.Opener)},
	{"store badger", decoded(badger.Opener)},
}

// decoded returns the type into which a function of Kinds decodes settings.
func decoded[T any](read func(func(into any) error) (T, error)) (of reflect.Type) {
	_, _ = read(func(into any) error {
		of = reflect.TypeOf(into).Elem()
		return io.EOF
	})
	return of
}

// program is why a file cannot set most of the fields in absent.
const program = "objects, functions and messages of the program"

// sectionKey is what sets the names in absent.
const sectionKey = "the key of the section"

// absent explains why a file cannot set a field, or what sets it instead.
var absent = map[string]string{
	"node.RunConfig.Provider":                "`provider`, with a `class`; see below",
	"node.RunConfig.Store":                   "`lease` names a section of `leases`, whose store is used",
	"node.RunConfig.Session":                 "the section that `lease` names has its settings",
	"node.RunConfig.Logger":                  program,
	"node.RunConfig.System":                  program,
	"node.RunConfig.Options":                 program,
	"node.RunConfig.Lookup":                  program,
	"node.RunConfig.Remoting":                program,
	"node.RunConfig.Health":                  "an object of the program, which serves it",
	"coordination/leaseconfig.Section.Store": "`store`; see below",
	"coordination.Config.Meters":             program,
	"node.RunConfig.Meters":                  program,
	"singleton.Config.Meters":                program,
	"coordination.Config.Clock":              program,
	"coordination.Config.Logger":             program,
	"distributeddata.Config.Name":            sectionKey,
	"distributeddata.Config.Membership":      "made by `Node.Document` or `Provider.Document` while the program runs",
	"distributeddata.Config.Store":           "`store`, with a `class`; see below. `Replicator.OpenStore` opens it",
	"distributeddata.Config.Meters":          program,
	"singleton.Config.Name":                  sectionKey,
	"singleton.Config.StopMessage":           program,
	"sharding.Config.Type":                   sectionKey,
	"sharding.Config.StopMessage":            program,
	"sharding.Config.Meters":                 program,
	"sharding.Config.Strategy":               program,
	"sharding.Config.RememberStore":          program,
	"provider/etcd.Config.Client":            "`endpoints`, `username`, `password` and `tls`; other options are functions",
	"provider/kubernetes.Config.Client":      "the configuration of the pod",
	"provider/zookeeper.Config.ACL":          "the default grants every user all permissions: restrict the network, or set it in the program",
	"provider/zookeeper.Config.Dial":         "`tls`; else a function",
	"coordination/zookeeper.Config.ACL":      "the default grants every user all permissions: restrict the network, or set it in the program",
	"coordination/zookeeper.Config.Dial":     "`tls`; else a function",
	"distributeddata/badger.Config.Key":      "`key-file`, so that no key is in the file",
	"distributeddata/badger.Config.Logger":   program,
	"distributeddata/bbolt.Config.Logger":    program,
}

// other lists defaults that differ in a file.
var other = map[string]string{
	"coordination.Config.Owner": "the host:port of the member in the section that node.lease names, else host:pid",
}

// named lists fields that are set by the key of their section.
var named = []string{"distributeddata.Config.Name", "singleton.Config.Name", "sharding.Config.Type"}

// TestDocs_EveryFieldIsThere checks that the page lists the key of every field, except those for
// which absent has the reason why they have none.
func TestDocs_EveryFieldIsThere(t *testing.T) {
	var text strings.Builder
	missing := maps.Clone(absent)
	shown := map[string]string{} // the section of a row that several have
	for _, table := range tables {
		fmt.Fprintf(&text, "\n### %s\n\n| key | |\n|---|---|\n", table.section)
		same := map[string][]string{} // keys by the section that explains them
		for _, r := range rows(t, nil, "", table.of, missing) {
			keys := "`" + strings.Join(r.keys, "`, `") + "`"
			line := fmt.Sprintf("| %s | %s |\n", keys, r.text)
			if before, ok := shown[line]; ok {
				same[before] = append(same[before], keys)
				continue
			}
			shown[line] = table.section
			text.WriteString(line)
		}
		for _, section := range slices.Sorted(maps.Keys(same)) {
			fmt.Fprintf(&text, "| %s | as of %s |\n", strings.Join(same[section], ", "), section)
		}
	}
	require.Empty(t, slices.Collect(maps.Keys(missing)), "reasons for fields that do not exist")

	const begin, end = "<!-- tables: go test ./lab/kindstest -run Docs -args -write -->\n",
		"\n<!-- end of tables -->"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok)
	got, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+text.String()+end+after), 0o644))
		return
	}
	require.Equal(t, text.String(), got, "run it with -args -write")
}

// row describes the keys of one or more fields that share a comment.
type row struct {
	keys []string
	text string
}

// rows appends a row for each field of a struct that a file can set, and removes the others from
// missing.
func rows(t *testing.T, to []row, prefix string, of reflect.Type, missing map[string]string) []row {
	for f := range of.Fields() {
		name := short(of) + "." + f.Name
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported():
		case key == "-" || slices.Contains(named, name):
			if _, ok := absent[name]; !ok {
				t.Errorf("%s cannot be set by a file: say why in absent", name)
			}
			delete(missing, name)
		case option == "inline":
			to = rows(t, to, prefix, f.Type, missing)
		case key == "":
			t.Errorf("%s has no yaml tag: give it a key, or \"-\" and a reason", name)
		case inner(f.Type) != nil:
			to = rows(t, to, prefix+key+".", inner(f.Type), missing)
		default:
			text := first(t, of, f.Name)
			if allowed := stated(t, of, f); allowed != "" && !ranges.MatchString(text) {
				text += " " + strings.ToUpper(allowed[:1]) + allowed[1:] + "."
			}
			if n := len(to); n > 0 && to[n-1].text == text {
				to[n-1].keys = append(to[n-1].keys, prefix+key)
				continue
			}
			to = append(to, row{[]string{prefix + key}, text})
		}
	}
	return to
}

// inner returns the struct that is a field's type, or nil.
func inner(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

const module = "github.com/concord-go/concord/"

func short(t reflect.Type) string {
	return strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), module), "node/") + "." + t.Name()
}

// sources holds the comments of the parsed packages.
var sources = map[string]map[string]string{}

// aside matches what a long sentence explains further.
var aside = regexp.MustCompile(`(: | \(|; |, such as ).*\.$`)

// first returns the first sentence of a field's comment, without what a long one explains further,
// and its sentences about the default.
func first(t *testing.T, of reflect.Type, field string) string {
	dir := "../../" + strings.TrimPrefix(of.PkgPath(), module)
	if sources[dir] == nil {
		sources[dir] = comments(t, dir)
	}
	text := strings.Join(strings.Fields(sources[dir][of.Name()+"."+field]), " ")
	sentences := strings.SplitAfter(text, ". ")
	out := regexp.MustCompile("^"+field+" (is |are |([a-z]+s ))").ReplaceAllString(
		strings.TrimSpace(sentences[0]), "$2")
	if short := aside.ReplaceAllString(out, "."); len(out) > 120 && len(short) > 30 &&
		ranges.MatchString(short) == ranges.MatchString(out) {
		out = short
	}
	if instead, ok := other[short(of)+"."+field]; ok {
		return out + " Default in a file: " + instead + "."
	}
	for _, s := range sentences[1:] {
		if strings.HasPrefix(s, "Default") || strings.HasPrefix(s, "Required") {
			out += " " + strings.TrimSpace(s)
		}
	}
	return strings.ReplaceAll(strings.TrimSuffix(out, " Default false."), "|", `\|`)
}

// ranges matches a text that states a range.
var ranges = regexp.MustCompile(`from -?\d|\d\w* to \d|at (most|least) \d|minimum`)

// stated returns the range of a number or a duration, as Validate states it when it refuses one. A
// range from A to B is accepted at both ends, and refused one step beyond them.
func stated(t *testing.T, of reflect.Type, f reflect.StructField) string {
	value := reflect.New(of)
	check := settings.CheckOf(of)
	if config, ok := reflect.TypeAssert[interface{ Validate() error }](value); ok {
		check = func(any) error { return config.Validate() }
	}
	if check == nil || !value.Elem().FieldByIndex(f.Index).CanInt() {
		return ""
	}
	refusal := regexp.MustCompile(`: ` + f.Name + ` (?:is \S+,|\(\S+\)) (?:it )?must be (.*)`)
	complaint := func(n int64) string {
		value.Elem().FieldByIndex(f.Index).SetInt(n)
		if err := check(value.Elem().Interface()); err != nil {
			if m := refusal.FindStringSubmatch(err.Error()); m != nil {
				return m[1]
			}
		}
		return ""
	}
	said := cmp.Or(complaint(math.MinInt64), complaint(math.MaxInt64), complaint(1))
	exact := regexp.MustCompile(`^(?:0 or )?from (\S+) to ([^\s,]+)(?:, or .*)?$`)
	if m := exact.FindStringSubmatch(said); m != nil {
		low, high := bound(t, m[1]), bound(t, m[2])
		name := of.String() + "." + f.Name
		require.Empty(t, complaint(high), "%s: %s", name, said)
		require.NotEmpty(t, complaint(high+1), "%s: %s", name, said)
		if low != 0 { // 0 stands for the default
			require.Empty(t, complaint(low), "%s: %s", name, said)
		}
		if low != 1 {
			require.NotEmpty(t, complaint(low-1), "%s: %s", name, said)
		}
	}
	return regexp.MustCompile(`(\dh|\dm)(0m)?(0s)\b`).ReplaceAllString(regexp.MustCompile(
		`\d{5,}`).ReplaceAllStringFunc(said, commas), "$1")
}

// commas groups the digits of a number by three.
func commas(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// bound reads a number, or a duration.
func bound(t *testing.T, text string) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return int64(d)
}

// comments returns the comments of the fields of all structs in a directory.
func comments(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path.Join(dir, e.Name()), nil,
			parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				fieldsOf(spec.Name.Name, s, out)
			}
			return false
		})
	}
	return out
}

// fieldsOf collects the comments of a struct's fields; a field without a comment shares that of the
// field before it.
func fieldsOf(name string, s *ast.StructType, out map[string]string) {
	text := ""
	for _, f := range s.Fields.List {
		if f.Doc != nil {
			text = f.Doc.Text()
		}
		for _, n := range f.Names {
			out[name+"."+n.Name] = text
		}
	}
}
