package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/concord-go/concord/coordination/leasestore"
)

// asked is one swap of a batch, as the statement reads it.
type asked struct {
	Name    string `json:"name"`
	Old     string `json:"old"`
	Owner   string `json:"owner"`
	Nonce   string `json:"nonce"`
	Token   int64  `json:"token"`
	Attempt string `json:"attempt"`
	TTL     int64  `json:"ttl"`
}

// batchStatement returns the statement that makes a batch of swaps and returns the names and marks
// of those made. Two of them lock and insert rows in the same order, so neither waits for the other
// in a circle. Notifications are as in the statement of one swap.
func (s *store) batchStatement() string {
	return fmt.Sprintf(`WITH asked AS (
	SELECT * FROM json_to_recordset($1::text::json)
		AS a(name text, old text, owner text, nonce text, token bigint, attempt text, ttl bigint)),
present AS (
	SELECT q.name, q.nonce, q.token FROM %[1]s q JOIN asked a ON q.name = a.name AND %[2]s = a.old
	ORDER BY q.name FOR UPDATE OF q),
updated AS (
	UPDATE %[1]s q SET owner = a.owner, nonce = a.nonce, token = a.token,
		attempt = a.attempt::numeric, ttl = a.ttl,
		version = nextval('%[1]s_version'), renewed = clock_timestamp()
	FROM asked a JOIN present p ON p.name = a.name COLLATE "C"
	WHERE q.name = p.name AND %[2]s = a.old
	RETURNING q.name, %[2]s AS mark, p.token = a.token AND p.nonce = a.nonce AS renewal),
inserted AS (
	INSERT INTO %[1]s AS q (name, owner, nonce, token, attempt, ttl)
	SELECT name, owner, nonce, token, attempt::numeric, ttl FROM asked WHERE old = ''
	ORDER BY name COLLATE "C"
	ON CONFLICT DO NOTHING RETURNING q.name, %[2]s AS mark, false AS renewal)
SELECT name, mark, CASE WHEN renewal THEN '' ELSE pg_notify($2, name)::text END
FROM (SELECT * FROM updated UNION ALL SELECT * FROM inserted) AS written`,
		s.table, "q.version || '.' || q.xmin::text")
}

// SwapAll implements leasestore.Batcher. It makes the swaps in one statement: commits with
// notifications wait for each other, so as many statements would need as many writes to the disk,
// one after another. If PostgreSQL refuses the statement because of one swap, each gets a statement
// of its own.
func (s *store) SwapAll(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	out := make([]leasestore.Swapped, len(swaps))
	written, err := s.swapAll(ctx, swaps)
	for i, w := range swaps {
		mark, ok := written[escape(w.Name)]
		switch {
		case errors.Is(err, leasestore.ErrRefused):
			out[i].Version, out[i].Err = s.Swap(ctx, w.Name, w.Old, w.Next)
		case err != nil:
			out[i].Err = err
		case ok:
			out[i].Version = leasestore.Version(mark)
		default:
			out[i].Err = leasestore.ErrConflict
		}
	}
	return out
}

// swapAll returns the marks of the rows that were written, by escaped name.
func (s *store) swapAll(ctx context.Context, swaps []leasestore.Swap) (map[string]string, error) {
	rows := make([]asked, len(swaps))
	for i, w := range swaps {
		rows[i] = asked{escape(w.Name), string(w.Old), escape(w.Next.Owner), holder(w.Next),
			int64(w.Next.Token), strconv.FormatUint(w.Next.Attempt, 10), int64(w.Next.TTL)}
		if len(rows[i].Name) > maxName {
			return nil, tooLong(w.Name)
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("%w: postgres: %w", leasestore.ErrRefused, err)
	}
	return ask(ctx, s.pool, "", func(ctx context.Context) (map[string]string, error) {
		found, err := s.db.QueryContext(ctx, s.batch, string(text), s.listener.channel)
		if err != nil {
			return nil, outcome(err)
		}
		defer found.Close()
		written := map[string]string{}
		for found.Next() {
			var name, mark string
			var notified any
			if err := found.Scan(&name, &mark, &notified); err != nil {
				return nil, fmt.Errorf("postgres: %w", err)
			}
			written[name] = mark
		}
		if err := found.Err(); err != nil {
			return nil, outcome(err)
		}
		return written, nil
	})
}
