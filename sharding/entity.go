package sharding

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
)

// Entity identifies an entity to its own code. Its Tenure is that of the lease of its shard: put
// Tenure.Token into every effect that must not happen twice, and make the target reject lower
// tokens.
type Entity struct {
	Type  string
	ID    string
	Shard int
	coordination.Tenure
}

// Self returns the entity that handles the message of ctx, or false if ctx does not belong to an
// entity.
func Self(ctx actor.Context) (Entity, bool) {
	if in := incarnationOf(ctx); in != nil {
		return in.entity(), true
	}
	return Entity{}, false
}

// Passivate stops the entity that handles a message once it has handled the messages before this
// call. Later messages wait and start it again, so none is lost. A remembered entity is also
// started again with its shard; see Forget. Passivate reports whether ctx belongs to an entity.
func Passivate(ctx actor.Context) bool {
	in := incarnationOf(ctx)
	if in != nil {
		in.shard.passivate(in, false)
	}
	return in != nil
}

// maxID bounds the id of an entity, in bytes.
const maxID = 512

// checkID returns ErrInvalid for an invalid entity id.
func checkID(id string) error {
	switch {
	case id == "" || len(id) > maxID:
		return fmt.Errorf("%w: entity id has %d bytes, it must have from 1 to %d", ErrInvalid,
			len(id), maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: entity id %q is not UTF-8", ErrInvalid, id)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%w: entity id %q has control characters", ErrInvalid, id)
	}
	return nil
}

// shardOf hashes the id with FNV-1a, so that every member, of every version, computes the same
// shard.
func shardOf(id string, shards int) int {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return int(h % uint64(shards))
}
