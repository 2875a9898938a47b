package consentui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets/app.css assets/app.js assets/mark.svg
var assetFiles embed.FS

// assets are the few files that pages load. Their names carry a hash of what is in them, so browsers keep them for
// good and still see a new version at once.
type assets struct {
	named  map[string]string // app.css → app.1a2b3c4d.css
	served map[string]asset
}

type asset struct {
	kind    string
	content []byte
}

func loadAssets() (assets, error) {
	a := assets{named: map[string]string{}, served: map[string]asset{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, fmt.Errorf("listing the assets: %w", err)
	}
	for _, e := range entries {
		content, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, fmt.Errorf("reading an asset: %w", err)
		}
		sum, ext := sha256.Sum256(content), path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a.named[e.Name()] = "/assets/" + name
		a.served[name] = asset{mime.TypeByExtension(ext), content}
	}
	return a, nil
}

func (u *UI) serveAsset(w http.ResponseWriter, r *http.Request) {
	file, ok := u.assets.served[r.PathValue("file")]
	if !ok {
		u.NotFound().ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content))
}
