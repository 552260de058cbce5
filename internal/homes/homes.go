// Package homes names the replicated keys of package sharding that are made anew when they are
// lost: the homes of shards, which the next coordinator assigns from what the members host, and the
// settings, which every member has. So the last member of a cluster need not hand them over.
package homes

import "strings"

const (
	begin    = "concord-sharding-"
	settings = "/settings"
	shard    = "/shard-"
)

// Settings returns the key of the settings of a type of entities.
func Settings(typ string) string { return begin + typ + settings }

// Table returns the prefix of the keys of its shards, one each.
func Table(typ string) string { return begin + typ + shard }

// Rebuilt reports whether a key is one of these.
func Rebuilt(key string) bool {
	rest, of := strings.CutPrefix(key, begin)
	at := strings.LastIndexByte(rest, '/')
	return of && at >= 0 && (rest[at:] == settings || strings.HasPrefix(rest[at:], shard))
}
