// Package eventually waits for what servers and controllers do by themselves.
package eventually

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Max is how long anything may take, also on a busy machine.
const Max = time.Minute

// Holds waits until condition holds; it fails the test where that takes too long or gives an error.
func Holds(test testing.TB, what string, condition func(context.Context) (bool, error)) {
	test.Helper()
	if err := wait.PollUntilContextTimeout(test.Context(), 10*time.Millisecond, Max, true, condition); err != nil {
		test.Fatalf("waiting until %s: %v", what, err)
	}
}

// Gone waits until get gives NotFound.
func Gone[object any](test testing.TB, get func(context.Context) (object, error)) {
	test.Helper()
	Holds(test, "it is gone", func(ctx context.Context) (bool, error) {
		_, err := get(ctx)
		if errors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
