package azureblob

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/concord-go/concord/coordination/leasestore"
)

// DocumentBlob returns the name of the blob of a document.
func (s *store) DocumentBlob(name string) string { return s.prefix + "d-" + pathOf(name) }

func (s *store) document(name string) (*blockblob.Client, error) {
	if _, err := s.blob(name); err != nil {
		return nil, err
	}
	return s.container.NewBlockBlobClient(s.DocumentBlob(name)), nil
}

// LoadDocument implements leasestore.Documents.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	b, err := s.document(name)
	if err != nil {
		return nil, "", err
	}
	text, etag, err := download(ctx, b, leasestore.MaxDocument)
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("azureblob: document %.80q: %w", name, err)
	case len(text) > leasestore.MaxDocument:
		return nil, "", fmt.Errorf("%w: azureblob: document %.80q has more than %d bytes",
			leasestore.ErrDamaged, name, leasestore.MaxDocument)
	}
	return text, leasestore.Version(etag), nil
}

// SwapDocument implements leasestore.Documents.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	b, err := s.document(name)
	if err != nil {
		return "", err
	}
	return written(upload(ctx, b, string(old), next))
}

// written returns the version of an uploaded blob.
func written(answer blockblob.UploadResponse, err error) (leasestore.Version, error) {
	if err != nil {
		return "", outcome(err)
	}
	if answer.ETag == nil || *answer.ETag == "" {
		return "", errors.New("azureblob: written, but the answer has no ETag")
	}
	return leasestore.Version(*answer.ETag), nil
}
