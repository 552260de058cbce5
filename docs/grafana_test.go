package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// instruments returns the names that Prometheus knows Concord's instruments by, as its exporter for
// OpenTelemetry makes them: from the source, so that a name that changes is noticed.
func instruments(t *testing.T) (names []string) {
	t.Helper()
	units := map[string]string{"By": "_bytes", "s": "_seconds"}
	call := regexp.MustCompile(
		`(m\.Gauge|m\.Count|m\.GaugeBy|m\.CountBy|m\.Durations|m\.Int64Counter)\("(concord\.[a-z_.]+)"(.*)`)
	for _, dir := range []string{"coordination", "distributeddata", "node", "sharding",
		"sharding/grains", "singleton"} {
		files, err := filepath.Glob("../" + dir + "/metrics.go")
		require.NoError(t, err)
		require.Len(t, files, 1)
		raw, err := os.ReadFile(files[0])
		require.NoError(t, err)
		// The durable ones are made by a function of their own, which knows the beginning of the
		// name.
		text := regexp.MustCompile(`\tgauge\("`).ReplaceAllString(string(raw),
			"\tm.Gauge(\"concord.ddata.durable.")
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			name := strings.ReplaceAll(m[2], ".", "_")
			unit := regexp.MustCompile(`WithUnit\("(\w+)"\)`).FindStringSubmatch(m[3])
			suffix := ""
			if unit != nil {
				suffix = units[unit[1]]
			}
			switch {
			case m[1] == "m.Durations":
				suffix = "_seconds"
			case suffix != "" && strings.HasSuffix(name, suffix):
				suffix = ""
			}
			switch {
			case strings.HasPrefix(m[1], "m.Count"), m[1] == "m.Int64Counter":
				names = append(names, name+suffix+"_total")
			case strings.HasPrefix(m[1], "m.Gauge"):
				names = append(names, name+suffix)
			default:
				names = append(names, name+suffix+"_bucket", name+suffix+"_sum", name+suffix+
					"_count")
			}
		}
	}
	require.Greater(t, len(names), 40)
	return names
}

// labels returns the names of the attributes of Concord's instruments, from the source.
func labels(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../*/*.go")
	require.NoError(t, err)
	grains, err := filepath.Glob("../sharding/grains/*.go")
	require.NoError(t, err)
	for _, file := range append(files, grains...) {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range attributeName.FindAllSubmatch(raw, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

var (
	attributeName = regexp.MustCompile(`attribute\.String\("([a-z]+)"`)
	grouping      = regexp.MustCompile(`\bby \(([^)]*)\)`)
	matcher       = regexp.MustCompile(`[{,]\s*([a-z]+)(?:=|!=|=~|!~)"`)
)

// checkLabels fails if an expression groups or selects by an attribute that no instrument has.
func checkLabels(t *testing.T, known []string, where, expr string) {
	t.Helper()
	var asked []string
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			asked = append(asked, strings.TrimSpace(name))
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		asked = append(asked, m[1])
	}
	for _, name := range asked {
		require.True(t, name == "le" || slices.Contains(known, name),
			"%s: no metric has the attribute %s", where, name)
	}
}

// checkExpression fails if an expression asks for a metric that is not there.
func checkExpression(t *testing.T, known []string, where, expr string) {
	t.Helper()
	asked := regexp.MustCompile(`concord_[a-z_]+`).FindAllString(expr, -1)
	require.NotEmpty(t, asked, "%s: %s", where, expr)
	for _, name := range asked {
		require.True(t, slices.Contains(known, name), "%s: there is no metric %s; there are %v",
			where, name, known)
	}
	require.Equal(t, strings.Count(expr, "("), strings.Count(expr, ")"), "%s: %s", where, expr)
}

func TestGrafana_DashboardAsksForMetricsThatExist(t *testing.T) {
	raw, err := os.ReadFile("grafana/concord.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	known, attributes := instruments(t), labels(t)
	require.NotEmpty(t, board.Panels)
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			checkExpression(t, known, p.Title, target.Expr)
			checkLabels(t, attributes, p.Title, target.Expr)
		}
	}
}

func TestGrafana_AlertsAskForMetricsThatExist(t *testing.T) {
	raw, err := os.ReadFile("grafana/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	tests, err := os.ReadFile("grafana/alerts_test.yaml") // "make alerts" runs them
	require.NoError(t, err)
	known, attributes := instruments(t), labels(t)
	checkExpression(t, known, "alerts_test.yaml", string(tests))
	seen := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			seen++
			checkExpression(t, known, r.Alert, r.Expr)
			checkLabels(t, attributes, r.Alert, r.Expr)
			require.NotEmpty(t, r.Annotations["description"], "%s says what to do", r.Alert)
			require.Contains(t, string(tests), `alertname="`+r.Alert+`"`, "alerts_test.yaml")
		}
	}
	require.Positive(t, seen)
}
