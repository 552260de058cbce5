package sharding

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/homes"
	"github.com/concord-go/concord/sharding/internal/core"
)

// The replicated table has an entry for each shard: the assignment with the largest version, with
// which its encoding begins. The coordinator writes entries without waiting; members read their own
// replica. Reports repair differences.
type assignment = crdt.MaxRegister[string]

func (l *binding) table() distributeddata.Prefix[assignment] {
	return distributeddata.NewPrefix(homes.Table(l.cfg.Type), assignment{})
}

// subscribeTable sends changed entries to the control actor.
func (l *binding) subscribeTable(to *actor.PID) {
	l.table().Subscribe(l.data, to, func(c *distributeddata.Changed[assignment]) any {
		e, ok := l.entryOf(c.Key, c.Value)
		if !ok {
			return nil
		}
		return &known{Entries: []core.Entry{e}}
	})
}

// readTable returns the entries in the replica of this member.
func (l *binding) readTable() (out []core.Entry) {
	for k, v := range l.table().Of(l.data.Snapshot()) {
		if e, ok := l.entryOf(k, v); ok {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b core.Entry) int { return a.Shard - b.Shard })
	return out
}

// writeTable writes entries as one event.
func (l *binding) writeTable(entries []core.Entry) {
	table := l.table()
	contain.Send(l.system, l.data.PID(), &distributeddata.Transaction{
		Modify: func(tx *distributeddata.Tx) error {
			for _, e := range entries {
				text, err := encodeEntry(e)
				if err != nil {
					return err
				}
				table.Key(strconv.Itoa(e.Shard)).In(tx).Set(tx.Writer, text)
			}
			return nil
		}, At: distributeddata.Local})
}

func (l *binding) entryOf(k distributeddata.Key[assignment], v assignment) (e core.Entry, ok bool) {
	text, ok := v.Value()
	if !ok {
		return e, false
	}
	e, err := decodeEntry(text)
	if rest, _ := l.table().Rest(k); err != nil || rest != strconv.Itoa(e.Shard) ||
		e.Shard >= l.cfg.Shards {
		l.counts.ignored.Add(1)
		l.log.Warn("home of a shard cannot be read and is ignored", slog.String("key", k.ID()),
			slog.Any("error", err))
		return e, false
	}
	return e, true
}

func isNotFound(err error) bool { return errors.Is(err, distributeddata.ErrNotFound) }
