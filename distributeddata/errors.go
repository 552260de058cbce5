package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/membership"
)

// Direct calls and the Result of responses return the same errors. Test for them with errors.Is.
var (
	// ErrNotFound: the consulted replicas hold no value. The value returned with it is the key's
	// empty value.
	ErrNotFound = errors.New("distributeddata: key not found")
	// ErrDeleted: the entry was deleted with Permanently and cannot be used again.
	ErrDeleted = errors.New("distributeddata: key permanently deleted")
	// ErrQuorum: the level was not reached in time; see QuorumError. A write is not undone: it is
	// applied here, continues to spread and may already have reached every member.
	ErrQuorum = errors.New("distributeddata: consistency level not reached")
	// ErrModify: the modify function rejected the update or panicked, or a mutator failed; see
	// ModifyError. Nothing has changed.
	ErrModify = errors.New("distributeddata: update refused")
	// ErrType: the key holds a value of another type, or of two. Nothing has changed.
	ErrType = crdt.ErrType
	// ErrUnknown: the context was done before the replicator answered; the error wraps the cause.
	// The operation may have happened, may still happen, or may not happen. For a write it can also
	// mean that the incarnation of the member ended before the level was reached: the write is kept
	// and spreads in the next incarnation. A call interrupted by a panic in this library's own code
	// returns ErrUnknown too, and so does a call under way when the replica finds that its process
	// was restored from a snapshot of its memory; both are logged.
	ErrUnknown = errors.New("distributeddata: outcome unknown")
	// ErrClosed: the replicator has not been started yet, or has been closed. A pending operation
	// may have happened.
	ErrClosed = errors.New("distributeddata: replicator not running")
	// ErrStore: the change is in the memory of this member and spreads to the others, but is not
	// known to be on this member's disk. The error wraps the store's error, such as store.ErrFull
	// or store.ErrFailed, or says that the store is slow. From a read, a Flush or the start it
	// means that the durable keys cannot be read.
	ErrStore = errors.New("distributeddata: not on the disk of this member")
	// ErrLoading: the operation timed out while the durable keys were still being read from the
	// disk. Nothing was done, so the operation may be retried. Volatile keys do not wait.
	ErrLoading = errors.New("distributeddata: the durable keys are still being read from the disk")
	// ErrLimit: a limit of Config is reached, or too many changes of durable keys already wait for
	// this member's disk; the text says which. Nothing was done.
	ErrLimit = errors.New("distributeddata: over a limit")
	// ErrInvalid: a key, a level or a configuration is not valid, or a direct call was made inside
	// a function that the replicator runs (Modify, Adapt or a codec), where it would deadlock; the
	// text says why. Nothing has changed. Such a function should use its arguments, or send a
	// message. Reads at Local never wait and are allowed. A call from a goroutine that the function
	// starts and waits for is not detected: it fails when its time is up; see
	// Config.OperationTimeout.
	ErrInvalid = errors.New("distributeddata: invalid argument")
)

// ModifyError is the error of an update that its modify function rejected. It matches ErrModify and
// its Reason.
type ModifyError struct {
	Key string // empty for a transaction
	// Reason is the function's error, the first error of the writer, or says that the function
	// panicked.
	Reason error
	Stack  string // stack trace of the panic; empty if there was none
	text   string
}

func (e *ModifyError) Error() string { return e.text }

// Unwrap makes the error match ErrModify and its Reason.
func (e *ModifyError) Unwrap() []error { return []error{ErrModify, e.Reason} }

// QuorumError reports the progress of an operation that did not reach its level. It matches
// ErrQuorum and context.DeadlineExceeded.
type QuorumError struct {
	Key              string
	Needed, Answered int // replicas, this one included
	// Seen is the number of members in view, this one included. Wanted is Config.MinMembers. While
	// Seen is less than Wanted, a majority may be out of reach.
	Seen, Wanted int
	// Counted is the number of members over which the level is counted: those that the cluster
	// remembers, whether seen or not, and at least Wanted.
	Counted int
	// Missing lists the counted members, in view or not, that did not take part, by name. If a
	// member was last seen at an address that differs from its name, the address is added. While
	// Seen is less than Wanted, Missing also lists the addresses of members that were listed before
	// and are lost.
	Missing []string

	unready bool // this replica does not count in quorums yet
}

// errLeft is returned by updates after the member has handed over what it had done.
var errLeft = fmt.Errorf("%w: %w", ErrClosed, core.ErrLeft)

// errNoMinMembers is returned by operations that need a quorum if MinMembers is not set.
var errNoMinMembers = fmt.Errorf("%w: %w", ErrInvalid, core.ErrMinMembers)

// errNotYet is returned by operations before the first incarnation runs.
var errNotYet = fmt.Errorf("%w: it has not started yet; it starts with its member, and Ready waits "+
	"for it", ErrClosed)

// errRestored is returned by calls that were under way when the replica found that its process had
// been restored from a snapshot.
var errRestored = fmt.Errorf("%w: this process was restored from a snapshot of its memory, and its replica goes on as a new one; see the log",
	ErrUnknown)

// errNoReplicator is returned by operations on a Replicator that New has not made.
var errNoReplicator = fmt.Errorf("%w: the replicator is nil, or New has not made it", ErrInvalid)

// given returns an error unless a request has a modify function.
func given(modify bool) error {
	if !modify {
		return fmt.Errorf("%w: modify is nil", ErrInvalid)
	}
	return nil
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	b.WriteString(ErrQuorum.Error())
	if e.Key != "" {
		fmt.Fprintf(&b, ": key %q", e.Key)
	}
	fmt.Fprintf(&b, ": %d of %d replicas, ", e.Answered, e.Needed)
	if e.Counted > e.Wanted {
		fmt.Fprintf(&b, "%d members counted, ", e.Counted)
	}
	if e.Needed > e.Counted { // members that are here are not the reason
		fmt.Fprintf(&b, "%s; the level needs more replicas than there are members, %d",
			seen(e.Seen, e.Wanted, "", nil), e.Counted)
	} else {
		b.WriteString(seen(e.Seen, e.Wanted, "missing", e.Missing))
	}
	if e.unready {
		b.WriteString("; this replica does not count before its Ready has returned")
	}
	return b.String()
}

// seen describes how many members are seen, and lists the members in which under the heading what.
func seen(have, want int, what string, which []string) string {
	s := fmt.Sprintf("%d of %d members seen", have, max(have, want))
	if len(which) > 0 {
		s += fmt.Sprintf("; %s %s", what, membership.Names(which))
	}
	return s
}

// Unwrap makes the error match ErrQuorum and context.DeadlineExceeded.
func (e *QuorumError) Unwrap() []error { return []error{ErrQuorum, context.DeadlineExceeded} }

// outcome returns the error for a finished operation of a core.
func (a *replica) outcome(p pending, d core.Done) error {
	if err := ofDisk(d); err != nil {
		return err
	}
	switch {
	case d.Interrupted:
		return errBroken
	case d.Err != nil:
		return ofCore(d.Err)
	case d.Short != nil:
		q := &QuorumError{
			Key: p.key, Needed: d.Short.Needed, Answered: d.Short.Answered,
			Counted: d.Short.Counted,
			Seen:    len(a.address) + 1, Wanted: a.l.cfg.MinMembers,
			unready: !p.d.core.Ready(),
		}
		quorum := p.d.core.QuorumStatus()
		for _, m := range d.Short.Missing {
			label := quorum.Label(cmp.Or(a.address[m], m))
			if !slices.Contains(q.Missing, label) { // a process and its successor at one address
				q.Missing = append(q.Missing, label)
			}
		}
		if q.Seen < q.Wanted {
			q.Missing = lost(q.Missing, a.l.members.Lost())
		}
		return q
	}
	return nil
}

// ofCore returns the error of an operation as users see it. It never compares an error of the
// application, since that error's methods may do anything.
func ofCore(err error) error {
	switch e := err.(type) { //nolint:errorlint // see above
	case *core.ForgetError:
		return fmt.Errorf("%w: %w", ErrInvalid, e)
	default:
		if err == core.ErrMinMembers { //nolint:errorlint // see above
			return errNoMinMembers
		}
		if err == core.ErrLeft { //nolint:errorlint // see above
			return errLeft
		}
		if err == core.ErrRestored { //nolint:errorlint // see above
			return errRestored
		}
		return err
	}
}

// lost appends to missing the given addresses of lost members that missing does not contain yet.
func lost(missing, addresses []string) []string {
	for _, at := range addresses {
		if !slices.ContainsFunc(missing, func(m string) bool {
			return m == at || strings.HasSuffix(m, " ("+at+")")
		}) {
			missing = append(missing, at)
		}
	}
	return missing
}
