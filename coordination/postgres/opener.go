package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/opened"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/settings"
)

var _ leaseconfig.Opener = Opener

// options are the settings of Opener, which docs/configuration.md lists.
type options struct {
	Config `yaml:",inline"`
	// URL of the database, or its DSN: "postgres://shop@db/shop". Required. The environment
	// variables of libpq, such as PGPASSWORD, set the parameters that URL does not.
	URL string `yaml:"url"`
	// MaxConnections of the pool, from 2 to 1000. Default 10.
	MaxConnections int `yaml:"max-connections"`
	// Install creates the tables when the store is opened, unless they exist; see Store.Install.
	// Default false.
	Install bool `yaml:"install"`
}

// installTimeout bounds Install.
const installTimeout = 10 * time.Second

// Validate returns all problems at once, as coordination.ErrInvalid. The errors contain no
// passwords.
func (s options) Validate() error {
	s = s.withDefaults()
	var errs []error
	if s.URL == "" {
		errs = append(errs, fmt.Errorf("postgres: %w: URL must be set", coordination.ErrInvalid))
	} else if _, err := pgx.ParseConfig(s.URL); err != nil {
		// The error may quote a part of the password.
		errs = append(errs, fmt.Errorf("postgres: %w: URL is neither a URL nor a DSN, or names a "+
			"file that cannot be read", coordination.ErrInvalid))
	}
	if s.MaxConnections < 2 || s.MaxConnections > 1000 {
		errs = append(errs, fmt.Errorf("postgres: %w: MaxConnections (%d) must be from 2 to 1000",
			coordination.ErrInvalid, s.MaxConnections))
	}
	return errors.Join(append(errs, s.validate())...)
}

func (s options) withDefaults() options {
	if s.MaxConnections == 0 {
		s.MaxConnections = 10
	}
	return s
}

// Opener reads the settings that docs/configuration.md lists, for a Provider or a configuration
// file, and opens a store with its own pool. Closing the store closes the pool. Without Install it
// opens the store also while the database is unavailable.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (leasestore.Store, error) { return opened.As(s.withDefaults().open()) }, nil
}

// owner is a store that owns its pool.
type owner struct {
	*store
}

// Close closes the store and the pool.
func (o owner) Close() error {
	err := errors.Join(o.store.Close(), o.db.Close())
	o.pool.wg.Wait()
	return err
}

func (s options) open() (owner, error) {
	cfg, err := pgx.ParseConfig(s.URL)
	if err != nil {
		return owner{}, fmt.Errorf("postgres: %w: URL is invalid", coordination.ErrInvalid)
	}
	pool, db := openPool(cfg, s.MaxConnections)
	made, err := newStore(db, s.Config)
	if err == nil {
		made.pool = pool
	}
	if err == nil && s.Install {
		ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
		defer cancel()
		err = made.Install(ctx)
	}
	if err != nil {
		return owner{}, errors.Join(err, db.Close())
	}
	return owner{made}, nil
}
