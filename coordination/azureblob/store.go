package azureblob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/silence"
)

const (
	maxPrefix = 256
	maxName   = 16 << 10
	maxPath   = 512 // of an escaped name; longer ones are hashed
	maxRecord = 64 << 10
)

// Config is the configuration of a store.
type Config struct {
	// Prefix of the blobs' names, at most 256 bytes. Default "concord/leases/".
	Prefix string `yaml:"prefix"`
}

// validate checks the configuration. The error is coordination.ErrInvalid.
func (c Config) validate() error {
	if len(c.Prefix) > maxPrefix {
		return fmt.Errorf("azureblob: %w: Prefix of %d bytes, at most %d", coordination.ErrInvalid,
			len(c.Prefix), maxPrefix)
	}
	return nil
}

// Store keeps leases in blobs of one container. It may be used by many goroutines and sessions. Use
// New. It holds nothing that must be closed.
type Store interface {
	leasestore.Store
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.Documents

	// Install creates the container, unless it exists.
	Install(ctx context.Context) error

	// BlobName returns the name of the blob of a lease.
	BlobName(name string) string

	// DocumentBlob returns the name of the blob of a document.
	DocumentBlob(name string) string
}

type store struct {
	container *container.Client
	prefix    string
	links     *silence.Links // or nil
}

// New returns a store on the client of a container.
func New(client *container.Client, c Config) (Store, error) {
	s, err := newStore(client, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(client *container.Client, c Config) (*store, error) {
	if client == nil {
		return nil, fmt.Errorf("azureblob: %w: client is nil", coordination.ErrInvalid)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Prefix == "" {
		c.Prefix = "concord/leases/"
	}
	return &store{container: client, prefix: c.Prefix}, nil
}

// Install creates the container, unless it exists.
func (s *store) Install(ctx context.Context) error {
	_, err := s.container.Create(ctx, nil)
	if err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return fmt.Errorf("azureblob: %w", err)
	}
	return nil
}

// BlobName returns the name of the blob of a lease.
func (s *store) BlobName(name string) string { return s.prefix + pathOf(name) }

func pathOf(name string) string {
	path := "n-" + url.PathEscape(name) // so never "." or "..", whatever the name is
	if len(path) > maxPath {
		sum := sha256.Sum256([]byte(name))
		path = "h-" + hex.EncodeToString(sum[:])
	}
	return path
}

func (s *store) blob(name string) (*blockblob.Client, error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("%w: azureblob: name of %d bytes, at most %d", leasestore.ErrRefused,
			len(name), maxName)
	}
	return s.container.NewBlockBlobClient(s.BlobName(name)), nil
}

// Load implements leasestore.Store.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	b, err := s.blob(name)
	if err != nil {
		return leasestore.Record{}, "", err
	}
	defer s.links.Watch(ctx)()
	data, etag, err := download(ctx, b, maxRecord)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return absent(name, err)
	}
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("azureblob: lease %.80q: %w", name, err)
	}
	rec, err := record.Decode(name, data)
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("azureblob: blob %.200q: %w", s.BlobName(name),
			err)
	}
	return rec, leasestore.Version(etag), nil
}

// download reads a blob, up to one byte more than its maximum size.
func download(ctx context.Context, b *blockblob.Client,
	most int64) (data []byte, etag azcore.ETag, err error) {
	answer, err := b.DownloadStream(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.ETag == nil || *answer.ETag == "" {
		return nil, "", errors.New("an answer without ETag")
	}
	data, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
	return data, *answer.ETag, err
}

// upload replaces a blob if it still has the version old. It makes one attempt, because the answer
// to a repeated request does not show whether the service has executed the first.
func upload(ctx context.Context, b *blockblob.Client, old string,
	data []byte) (blockblob.UploadResponse, error) {
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	return b.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: unchanged(old)},
	})
}

// absent returns a token that begins at the time of the answer, so that the tokens of a deleted
// blob do not repeat.
func absent(name string, notFound error) (leasestore.Record, leasestore.Version, error) {
	var answer *azcore.ResponseError
	if !errors.As(notFound, &answer) || answer.RawResponse == nil {
		return leasestore.Record{}, "", fmt.Errorf("azureblob: lease %.80q: %w", name, notFound)
	}
	date, err := http.ParseTime(answer.RawResponse.Header.Get("Date"))
	if err != nil {
		return leasestore.Record{}, "",
			fmt.Errorf("azureblob: lease %.80q: an answer without date: %w",
				name, err)
	}
	return leasestore.Record{Token: coordination.Token(max(date.Add(time.Second).UnixMilli(), 0))},
		"", nil
}

// Swap implements leasestore.Store.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	b, err := s.blob(name)
	if err != nil {
		return "", err
	}
	data, err := record.Encode(name, next)
	if err != nil {
		return "", fmt.Errorf("%w: azureblob: %w", leasestore.ErrRefused, err)
	}
	defer s.links.Watch(ctx)()
	return written(upload(ctx, b, string(old), data))
}

// unchanged is the condition that a blob still has a version, or still does not exist.
func unchanged(version string) *blob.ModifiedAccessConditions {
	if version == "" {
		return &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}
	}
	return &blob.ModifiedAccessConditions{IfMatch: new(azcore.ETag(version))}
}

// KeepsSessions implements leasestore.SessionKeeper.
func (s *store) KeepsSessions() bool { return true }

// Remove implements leasestore.Remover.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	b, err := s.blob(name)
	if err != nil {
		return err
	}
	_, err = b.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: unchanged(string(old))}})
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ConditionNotMet):
		return leasestore.ErrConflict
	case err != nil:
		return fmt.Errorf("azureblob: %w", err)
	}
	return nil
}

// outcome classifies an error: ErrConflict or ErrRefused if certainly nothing was written.
func outcome(err error) error {
	if bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists) {
		return leasestore.ErrConflict
	}
	var answer *azcore.ResponseError
	if errors.As(err, &answer) && answer.StatusCode >= 400 && answer.StatusCode < 500 &&
		answer.StatusCode != http.StatusRequestTimeout {
		return fmt.Errorf("%w: azureblob: %w", leasestore.ErrRefused, err)
	}
	return fmt.Errorf("azureblob: %w", err)
}
