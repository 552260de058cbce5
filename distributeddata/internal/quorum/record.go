package quorum

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"

	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// Chain orders a memory among those of one cluster.
type Chain struct {
	Epoch   uint64 // rises with each change of the record; 0: not from a record
	Cluster uint64 // a random number, given when the record was created
}

// MaxRecord is the maximum size of a membership record in bytes: room for some thousand members.
const MaxRecord = 128 << 10

// recordFormat is the version of the record format.
const recordFormat = 1

// The record is JSON, so that it can be read in the store:
//
//	{"concord":1,"cluster":"…","epoch":7,"members":[{"name":"a","version":0,"number":1,"replica":"…","stage":"in"}],"sum":"…"}
type recordText struct {
	Format  int            `json:"concord"`
	Cluster hex            `json:"cluster"`
	Epoch   uint64         `json:"epoch"`
	Members []recordMember `json:"members"`
	Sum     hex            `json:"sum"` // CRC-32C of the record with a zero sum
}

type recordMember struct {
	Name    string `json:"name"`
	Version uint64 `json:"version"`
	Number  uint64 `json:"number"`
	Replica hex    `json:"replica"`
	Stage   string `json:"stage"`
	Order   uint64 `json:"order,omitempty"`
	Handed  bool   `json:"handed,omitempty"`
}

// stages are the names of the ranks, in order.
var stages = []string{"absent", "joining", "in", "going", "gone"}

// String returns the name that records have for the rank.
func (r Rank) String() string { return stages[r] }

// hex is a number written in hexadecimal digits, because JSON cannot represent all numbers above
// 2^53.
type hex uint64

// MarshalText implements encoding.TextMarshaler.
func (h hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hex) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	*h = hex(n)
	return err
}

// Text returns the record for a memory and its place in the chain.
func (m Memory) Text() ([]byte, error) {
	t := recordText{Format: recordFormat, Cluster: hex(m.Cluster), Epoch: m.Epoch,
		Members: []recordMember{}}
	for _, r := range m.all {
		t.Members = append(t.Members, recordMember{r.Name, r.Version, r.Inc.Number,
			hex(r.Inc.Replica), r.Rank.String(), r.Order, r.Handed})
	}
	out, err := t.sealed()
	if err == nil && len(out) > MaxRecord {
		err = fmt.Errorf("the record would have %d bytes, over the limit of %d: %d members are counted", len(out), MaxRecord, m.size)
	}
	return out, err
}

func (t recordText) sealed() ([]byte, error) {
	t.Sum = 0
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	t.Sum = hex(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return json.Marshal(t)
}

// ReadRecord decodes a record, and rejects one that no replica writes.
func ReadRecord(b []byte) (Memory, error) {
	bad := func(format string, args ...any) (Memory, error) {
		return Memory{}, fmt.Errorf("damaged record of %d bytes: "+format,
			append([]any{len(b)}, args...)...)
	}
	if len(b) > MaxRecord {
		return Memory{}, fmt.Errorf("the record has %d bytes, over the limit of %d", len(b),
			MaxRecord)
	}
	var v struct {
		Format int `json:"concord"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return bad("%w", err)
	}
	if v.Format != recordFormat {
		return Memory{}, fmt.Errorf(
			"the record has format %d; this version of the module reads format %d", v.Format,
			recordFormat)
	}
	var t recordText
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return bad("%w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return bad("data follows it")
	}
	if again, err := t.sealed(); err != nil || !bytes.Equal(again, b) {
		return bad("its checksum does not match")
	}
	if t.Epoch == 0 || t.Epoch > MaxOrdinal || t.Cluster == 0 {
		return bad("epoch %d of cluster %016x", t.Epoch, uint64(t.Cluster))
	}
	members := make([]*pb.RememberedMember, len(t.Members))
	for i, r := range t.Members {
		members[i] = &pb.RememberedMember{
			Name: r.Name, Version: r.Version, Number: r.Number,
			Replica: uint64(causal.Replica(r.Replica)),
			Stage:   uint32(max(0, slices.Index(stages, r.Stage))), Order: r.Order,
			Handed: r.Handed,
		}
	}
	m, err := Decode(members)
	if err != nil {
		return bad("%w", err)
	}
	m.Chain = Chain{t.Epoch, uint64(t.Cluster)}
	return m, nil
}
