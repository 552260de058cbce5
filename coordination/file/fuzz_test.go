package file

import (
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

// FuzzDecode checks that no input panics, and that a decoded entry encodes to the same entry.
func FuzzDecode(f *testing.F) {
	e := entry{}.next("x", leasestore.Record{Owner: "o", Nonce: "n", Token: 3, Attempt: 2,
		TTL: time.Second})
	good, err := e.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("concord-lease 1 00000000\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(data)
		if err != nil {
			return
		}
		again, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decode(again); back != e || err != nil {
			t.Fatalf("%+v became %+v, %v", e, back, err)
		}
	})
}

func TestBase_InjectiveAndSafe(t *testing.T) {
	seen := map[string]string{}
	for i := range 256 {
		for _, name := range []string{string([]byte{byte(i)}), "a" + string([]byte{byte(i)}),
			strings.Repeat("z", 300) + string([]byte{byte(i)}), strings.Repeat("z", i)} {
			b := strings.ToLower(base(name))
			if other, ok := seen[b]; ok && other != name {
				t.Errorf("%q and %q are both %s", name, other, b)
			}
			seen[b] = name
			if len(b) > 240 || strings.ContainsAny(b, "/\\.\x00: ") {
				t.Errorf("%q becomes %q", name, b)
			}
		}
	}
}
