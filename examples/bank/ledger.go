package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/concord-go/concord/coordination"
)

// ledger is the database of the bank. It rejects writes from earlier tenures of an account. This
// keeps the accounts correct even while a member that was cut off does not know yet that it lost
// its lease.
type ledger struct {
	mu     sync.Mutex
	rows   map[string]*row
	writes []write
}

// row is the record of one account.
type row struct {
	token    coordination.Token // of the last write
	balance  int
	debited  map[string]bool    // transfers from this account that have begun
	credited map[string]bool    // transfers to this account that have arrived
	owed     map[string]payment // transfers from this account that may not have arrived
	notes    map[string][]int   // by sender
}

type payment struct {
	id, to string
	amount int
}

// write is an accepted change.
type write struct {
	account string
	token   coordination.Token
}

func newLedger(accounts []string, balance int) *ledger {
	l := &ledger{rows: map[string]*row{}}
	for _, name := range accounts {
		l.rows[name] = &row{
			balance: balance, debited: map[string]bool{}, credited: map[string]bool{},
			owed: map[string]payment{}, notes: map[string][]int{},
		}
	}
	return l
}

// change changes a row unless a later tenure has written to it.
func (l *ledger) change(account string, token coordination.Token, f func(*row)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rows[account]
	if token < r.token {
		return fmt.Errorf("token %v of %s comes after %v", token, account, r.token)
	}
	r.token = token
	l.writes = append(l.writes, write{account, token})
	f(r)
	return nil
}

func (l *ledger) owed(account string) (out []payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.rows[account].owed {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b payment) int { return strings.Compare(a.id, b.id) })
	return out
}

// note records a note received by an account, without checking the token. An account that handles
// messages under an expired tenure would be detected.
func (l *ledger) note(account, sender string, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rows[account]
	r.notes[sender] = append(r.notes[sender], number)
}

func (l *ledger) balance(account string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[account].balance
}

// read reports whether every account has recorded a note.
func (l *ledger) read(sender string, number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rows {
		if !slices.Contains(r.notes[sender], number) {
			return false
		}
	}
	return true
}

// check returns an error if the ledger is inconsistent.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := map[string]coordination.Token{}
	for _, w := range l.writes {
		if w.token < last[w.account] {
			return fmt.Errorf("%s: token %v after %v", w.account, w.token, last[w.account])
		}
		last[w.account] = w.token
	}
	for name, r := range l.rows {
		if len(r.owed) > 0 {
			return fmt.Errorf("%s owes %d payments", name, len(r.owed))
		}
		for sender, numbers := range r.notes {
			for i := 1; i < len(numbers); i++ {
				if numbers[i] <= numbers[i-1] {
					return fmt.Errorf("%s: note %d of %s after %d", name, numbers[i], sender,
						numbers[i-1])
				}
			}
		}
	}
	return nil
}
