package docs_test

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// limited are the configurations of docs/limits.md, by its headings.
var limited = map[string]interface{ Validate() error }{
	"Replicated data": &distributeddata.Config{},
	"Singletons":      &singleton.Config{},
	"Sharding":        &sharding.Config{},
	"Remoting":        &node.Config{},
	"A member":        &node.RunConfig{},
}

// TestLimits_AreThoseOfTheCode: each "A to B" of a setting in docs/limits.md is accepted at both
// ends, and refused by name one step beyond them.
func TestLimits_AreThoseOfTheCode(t *testing.T) {
	page, err := os.ReadFile("limits.md")
	require.NoError(t, err)
	heading, checked := "", map[string]int{}
	for line := range strings.SplitSeq(string(page), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			heading = name
		}
		cells := strings.Split(line, "|")
		if limited[heading] == nil || len(cells) != 6 {
			continue
		}
		low, high, ok := strings.Cut(strings.TrimSpace(cells[3]), " to ")
		if !ok {
			continue
		}
		name := strings.Trim(cells[1], " `")
		of := reflect.New(reflect.TypeOf(limited[heading]).Elem())
		field := of.Elem().FieldByName(name)
		require.True(t, field.IsValid(), "%s has no field %s", of.Type(), name)
		if field.Kind() != reflect.Int && field.Kind() != reflect.Int64 {
			continue
		}
		from, okFrom := bound(low)
		to, okTo := bound(high)
		if !okFrom || !okTo {
			continue
		}
		complaint := func(n int64) bool {
			field.SetInt(n)
			err := of.Interface().(interface{ Validate() error }).Validate()
			return err != nil && (strings.Contains(err.Error(), fmt.Sprintf(": %s is ", name)) ||
				strings.Contains(err.Error(), fmt.Sprintf(": %s (", name)))
		}
		if from != 0 { // which stands for the default
			require.False(t, complaint(from), "%s: %s must accept %s", heading, name, low)
		}
		require.False(t, complaint(to), "%s: %s must accept %s", heading, name, high)
		require.True(t, complaint(to+1), "%s: %s must refuse more than %s", heading, name, high)
		if from != 1 { // 0 stands for the default
			require.True(t, complaint(from-1), "%s: %s must refuse less than %s", heading,
				name, low)
		}
		checked[heading]++
	}
	require.Equal(t, map[string]int{"Replicated data": 8, "Singletons": 8, "Sharding": 11,
		"Remoting": 2, "A member": 4}, checked)
}

// bound reads a number with commas, or a duration.
func bound(text string) (int64, bool) {
	if n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64); err == nil {
		return n, true
	}
	d, err := time.ParseDuration(text)
	return int64(d), err == nil
}
