package inspect

import (
	"strings"
	"testing"

	"github.com/concord-go/concord/distributeddata/store"
)

func FuzzDescribe(f *testing.F) {
	f.Add("d\x02views\xffkpath")
	f.Add("v\x80")
	f.Fuzz(func(t *testing.T, key string) {
		r := describe(store.Row{Key: key})
		if r.Kind == "" || r.Entry != "" && !strings.Contains(key, r.Entry) {
			t.Errorf("%q is %+v", key, r)
		}
	})
}
