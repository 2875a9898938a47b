package oauth

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/ory/fosite"

	"switchboard/internal/web"
)

const maxTokenForm = 64 << 10

// token serves /oauth/token (RFC 6749 §3.2).
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, err := bodyForm(r)
	if err == nil {
		err = checkGrantType(form)
	}
	if err != nil {
		s.writeFailure(w, r, err)
		return
	}
	ctx := r.Context()
	ar, err := s.provider.NewAccessRequest(ctx, formRequest(r, form), &session{})
	if err == nil {
		var resp fosite.AccessResponder
		if resp, err = s.provider.NewAccessResponse(ctx, ar); err == nil {
			s.provider.WriteAccessResponse(ctx, w, ar, resp)
			return
		}
	}
	s.writeFailure(w, r, err)
}

// checkGrantType comes before fosite, which answers invalid_request for a grant type that it does not know.
func checkGrantType(form url.Values) error {
	switch grant := form.Get("grant_type"); {
	case grant == "":
		return fosite.ErrInvalidRequest.WithHint("The parameter grant_type is missing.")
	case !slices.Contains(grantTypes, grant):
		return fosite.ErrUnsupportedGrantType.WithHint("The grant types are authorization_code and refresh_token.")
	}
	return nil
}

// bodyForm reads a form from the body alone, each parameter once (RFC 6749 §3.2), but for resource.
func bodyForm(r *http.Request) (url.Values, error) {
	if web.Media(r) != "application/x-www-form-urlencoded" {
		return nil, fosite.ErrInvalidRequest.WithHint("Send the parameters as application/x-www-form-urlencoded.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxTokenForm+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || len(body) > maxTokenForm:
		return nil, fosite.ErrInvalidRequest.WithHint("The request is too long.")
	case err != nil:
		return nil, fosite.ErrInvalidRequest.WithHint("The request could not be read to its end.").WithWrap(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fosite.ErrInvalidRequest.WithHint("The parameters are not a form.")
	}
	for key, values := range form {
		if len(values) > 1 && key != "resource" {
			return nil, fosite.ErrInvalidRequest.WithHint(fmt.Sprintf("The parameter %.40q is there twice (RFC 6749 section 3.2).", key))
		}
	}
	return form, nil
}
