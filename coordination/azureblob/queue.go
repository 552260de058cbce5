package azureblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/queue"
)

// queued begins the path of a lease's queue, where that of its blob begins otherwise.
const queued = "q-"

// Enqueue implements coordination.Queuer.
func (s *Store) Enqueue(ctx context.Context, name string, p coordination.Place) (ahead []coordination.Place, err error) {
	return ahead, s.changeQueue(ctx, name, func(q *queue.Queue) { ahead = q.Enqueue(p) })
}

// Leave implements coordination.Queuer.
func (s *Store) Leave(ctx context.Context, name string, gone []coordination.Place) error {
	return s.changeQueue(ctx, name, func(q *queue.Queue) { q.Leave(gone...) })
}

func (s *Store) changeQueue(ctx context.Context, name string, change func(*queue.Queue)) error {
	if _, err := s.blob(name); err != nil {
		return err
	}
	if err := queue.Change(ctx, cell{s.container.NewBlockBlobClient(s.prefix + queued + pathOf(name))}, change); err != nil {
		return fmt.Errorf("azureblob: queue of lease %.80q: %w", name, err)
	}
	return nil
}

// cell is the blob of a queue.
type cell struct{ *blockblob.Client }

// Read implements queue.Cell.
func (c cell) Read(ctx context.Context) (text []byte, version string, err error) {
	answer, err := c.DownloadStream(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(answer.Body, maxRecord))
	if err == nil && answer.ETag == nil {
		err = errors.New("an answer without ETag")
	}
	if err != nil {
		return nil, "", err
	}
	return text, string(*answer.ETag), nil
}

// Write implements queue.Cell.
func (c cell) Write(ctx context.Context, old string, text []byte) error {
	_, err := c.Upload(ctx, streaming.NopCloser(bytes.NewReader(text)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: unchanged(old)},
	})
	if err != nil {
		return outcome(err)
	}
	return nil
}
