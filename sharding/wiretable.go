package sharding

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/linear"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// versionBytes is the length of the prefix of an encoded entry: epoch and number, big-endian, so
// that a larger version is a larger text.
const versionBytes = 16

func encodeEntry(e core.Entry) (string, error) {
	var r roll
	m := &pb.ShardingAssignment{Entry: r.entry(e)}
	m.Members = r.members
	b := binary.BigEndian.AppendUint64(nil, e.Version.Epoch)
	b = binary.BigEndian.AppendUint64(b, e.Version.N)
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
	return string(b), err
}

func decodeEntry(text string) (e core.Entry, err error) {
	if len(text) < versionBytes {
		return e, errors.New("no version")
	}
	var m pb.ShardingAssignment
	if err := linear.Unmarshal([]byte(text[versionBytes:]), &m); err != nil {
		return e, err
	}
	entries, err := decodeEntries(m.Members, []*pb.ShardingEntry{m.Entry})
	if err != nil {
		return e, err
	}
	e = entries[0]
	if at, n := binary.BigEndian.Uint64([]byte(text)),
		binary.BigEndian.Uint64([]byte(text[8:])); e.Version != (core.Version{Epoch: at, N: n}) {
		return e, fmt.Errorf("version %d.%d does not match %d.%d in the entry", at, n,
			e.Version.Epoch, e.Version.N)
	}
	return e, nil
}
