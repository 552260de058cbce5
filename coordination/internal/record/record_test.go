package record_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
)

func TestDecode_RefusesWhatEncodeDoesNotWrite(t *testing.T) {
	want := leasestore.Record{Owner: "ü\x00\"", Nonce: "n", Token: 1<<63 - 1, Attempt: 1<<64 - 1,
		TTL:     time.Hour,
		Session: 7}
	good, err := record.Encode("x", want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := record.Decode("x", good); got != want || err != nil {
		t.Errorf("got %+v %v", got, err)
	}
	for what, data := range map[string]string{
		"empty": "", "garbage": "hello", "cut": string(good[:len(good)-1]),
		"two": string(good) + string(good),
		"later format": strings.Replace(string(good), `"format":2`,
			`"format":3`, 1),
		"no format": strings.Replace(string(good), `"format":2,`, ``,
			1),
		"session that its format does not know": strings.Replace(string(good), `"format":2`,
			`"format":1`, 1),
		"later field": strings.Replace(string(good), `"token"`,
			`"sibling":1,"token"`, 1),
		"token range": strings.Replace(string(good),
			`9223372036854775807`, `92233720368547758070000`, 1),
		"huge": string(good) + strings.Repeat(" ", 64<<10),
	} {
		if _, err := record.Decode("x", []byte(data)); !errors.Is(err, leasestore.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := record.Decode("y", good); !errors.Is(err, leasestore.ErrDamaged) {
		t.Errorf("another name: %v", err)
	}
	if _, err := record.Encode("x", leasestore.Record{
		Owner: strings.Repeat("o", 64<<10)}); err == nil {
		t.Error("encoded more than can be decoded")
	}
}

func FuzzDecode(f *testing.F) {
	good, err := record.Encode("x", leasestore.Record{Owner: "o", Nonce: "n", Token: 3, Attempt: 4,
		TTL: time.Second})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":1,"name":"x","token":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := record.Decode("x", data)
		if err != nil {
			return
		}
		again, err := record.Encode("x", r)
		if err != nil {
			t.Skip("longer than it was") // escapes
		}
		if got, err := record.Decode("x", again); got != r || err != nil {
			t.Errorf("%q: %+v, then %+v, %v", data, r, got, err)
		}
	})
}
