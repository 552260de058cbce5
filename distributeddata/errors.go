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
	"github.com/concord-go/concord/internal/lifecycle"
)

// The same errors come out of direct calls and of the Result of responses. Test with errors.Is.
var (
	// ErrNotFound: no value is there, as far as the consulted replicas know. The value returned with it
	// is the key's empty one.
	ErrNotFound = errors.New("distributeddata: key not found")
	// ErrDeleted: the entry was deleted with Permanently, and cannot be used again.
	ErrDeleted = errors.New("distributeddata: key deleted for good")
	// ErrQuorum: the level was not reached in time; see QuorumError. A write is not undone: it is
	// applied here, goes on spreading and may be everywhere already.
	ErrQuorum = errors.New("distributeddata: consistency level not reached")
	// ErrModify: the modify function refused or panicked, or a mutator failed; see ModifyError.
	// Nothing has changed.
	ErrModify = errors.New("distributeddata: update refused")
	// ErrType: the key holds a value of another type, or of two. Nothing has changed.
	ErrType = crdt.ErrType
	// ErrUnknown: the context ended before the replicator answered; it wraps the cause. What was asked
	// for may have happened, may still happen, or may not. Of a write it also says that the life of the member
	// ended before the level was reached: the write is kept, and goes on spreading in the next life. After a panic of
	// this library's own code, which is logged, the call that it interrupted ends with it too.
	ErrUnknown = errors.New("distributeddata: outcome unknown")
	// ErrBetweenLives: the context ended while the member was between two lives, see Replicator. Nothing was
	// done: the operation may be tried again.
	ErrBetweenLives = lifecycle.ErrBetweenLives
	// ErrClosed: the replicator has not been started yet, or has been closed. An operation that was
	// under way may have happened.
	ErrClosed = errors.New("distributeddata: replicator not running")
	// ErrReentrant: a direct call was made inside a function that the replicator runs: Modify, Adapt, a codec. It
	// would wait for itself. Nothing was done. In such a function use what it was given, or send a message.
	// Reads at Local, which never wait, are allowed. A call from a goroutine that the function starts and waits
	// for is not noticed: it ends when its time is up, see Config.OperationTimeout.
	ErrReentrant = errors.New("distributeddata: called from inside the replicator")
	// ErrStore: the change stands in the memory of this member and goes on to the others, but is not known to be on this
	// member's disk: the error wraps what the store has said, as store.ErrFull or store.ErrFailed, or that it is
	// slow. Of a read, a Flush and the start: the durable keys cannot be read.
	ErrStore = errors.New("distributeddata: not on the disk of this member")
	// ErrStoreBusy: too many changes of durable keys wait for the disk of this member already. Nothing was done: the
	// operation may be tried again.
	ErrStoreBusy = errors.New("distributeddata: the disk of this member is behind")
	// ErrLoading: the time of the operation ended while the durable keys were still being read from the disk. Nothing
	// was done: the operation may be tried again. Volatile keys do not wait.
	ErrLoading = errors.New("distributeddata: the durable keys are still being read from the disk")
	// ErrLimit: one of the limits of Config is reached; the text names it. Nothing was done.
	ErrLimit = errors.New("distributeddata: over a limit")
	// ErrInvalid: a key, a level or a configuration that cannot be used; the text says why. Nothing has
	// changed.
	ErrInvalid = errors.New("distributeddata: invalid argument")
)

// ModifyError is the error of an update that its modify function refused. It is ErrModify, and its Reason.
type ModifyError struct {
	Key    string // empty for a transaction
	Reason error  // what the function returned, the first error of the writer, or that the function panicked
	Stack  string // of the panic; empty without one
	text   string
}

func (e *ModifyError) Error() string { return e.text }

// Unwrap makes the error match ErrModify and its Reason.
func (e *ModifyError) Unwrap() []error { return []error{ErrModify, e.Reason} }

// QuorumError says how far an operation came that did not reach its level. It is ErrQuorum, and
// context.DeadlineExceeded.
type QuorumError struct {
	Key              string
	Needed, Answered int // replicas, this one included
	// Seen is how many members this one lists, itself included, and Wanted how many there must be: if Seen is
	// less, the level cannot be reached, or only with all of those.
	Seen, Wanted int
	// Counted is how many members the level is counted in: those that the cluster remembers, seen or not, and at
	// least Wanted.
	Counted int
	// Missing are the members that did not take part, by name, with the address where they were seen last if that
	// is another: those that are counted, in view or not. While Seen is less than Wanted, the addresses of those
	// that were listed before, and are lost, are among them.
	Missing []string
}

// errNoMinMembers is the error of whatever needs a quorum at a replicator without MinMembers.
var errNoMinMembers = fmt.Errorf("%w: %w", ErrInvalid, core.ErrMinMembers)

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
	b.WriteString(seen(e.Seen, e.Wanted, "missing", e.Missing))
	return b.String()
}

// seen says in words how many members there are, and of which ones what is so.
func seen(have, want int, what string, which []string) string {
	s := fmt.Sprintf("%d of %d members seen", have, max(have, want))
	if len(which) > 0 {
		s += fmt.Sprintf("; %s %s", what, strings.Join(which, ", "))
	}
	return s
}

// Unwrap makes the error match ErrQuorum and context.DeadlineExceeded.
func (e *QuorumError) Unwrap() []error { return []error{ErrQuorum, context.DeadlineExceeded} }

// outcome turns the end of a core's operation into an error.
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
			Key: p.key, Needed: d.Short.Needed, Answered: d.Short.Answered, Counted: d.Short.Counted,
			Seen: len(a.address) + 1, Wanted: a.l.cfg.MinMembers,
		}
		roll := p.d.core.Rollcall()
		for _, m := range d.Short.Missing {
			q.Missing = append(q.Missing, roll.Label(cmp.Or(a.address[m], m)))
		}
		if q.Seen < q.Wanted {
			q.Missing = lost(q.Missing, a.l.members.Lost())
		}
		return q
	}
	return nil
}

// ofCore returns the error of an operation as users see it. One of the application is left alone: it may do anything
// when it is compared.
func ofCore(err error) error {
	switch e := err.(type) { //nolint:errorlint // see above
	case *core.ForgetError:
		return fmt.Errorf("%w: %w", ErrInvalid, e)
	default:
		if err == core.ErrMinMembers { //nolint:errorlint // see above
			return errNoMinMembers
		}
		return err
	}
}

// lost adds to the members that are missing the addresses of those that were lost and are not among them.
func lost(missing, addresses []string) []string {
	for _, at := range addresses {
		if !slices.ContainsFunc(missing, func(m string) bool { return m == at || strings.HasSuffix(m, " ("+at+")") }) {
			missing = append(missing, at)
		}
	}
	return missing
}
