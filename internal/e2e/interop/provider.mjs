// The part that an app adds to either TypeScript SDK: where it keeps what it got, and how its person is sent away.
import { setup } from './talk.mjs';

/** Nobody listens here: the test reads the address that the person is sent back to. */
const redirectUrl = 'http://127.0.0.1:53682/callback';

export class Provider {
  constructor(name) {
    this.redirectUrl = redirectUrl;
    this.clientMetadataUrl = setup.clientMetadataUrl || undefined;
    this.clientMetadata = {
      client_name: name,
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: setup.auth,
    };
    this.kept = {};
  }

  state() {
    this.kept.state = crypto.randomUUID();
    return this.kept.state;
  }

  clientInformation() {
    return this.kept.client;
  }

  saveClientInformation(client) {
    this.kept.client = client;
  }

  tokens() {
    return this.kept.tokens;
  }

  saveTokens(tokens) {
    this.kept.tokens = tokens;
  }

  codeVerifier() {
    return this.kept.verifier;
  }

  saveCodeVerifier(verifier) {
    this.kept.verifier = verifier;
  }

  saveDiscoveryState(discovered) {
    this.kept.discovered = discovered;
  }

  discoveryState() {
    return this.kept.discovered;
  }

  /** Where the person has to go. The SDK then ends what it was doing, and the app takes it up afterwards. */
  redirectToAuthorization(url) {
    this.kept.url = url;
  }

  invalidateCredentials(what) {
    if (what === 'all' || what === 'client') delete this.kept.client;
    if (what === 'all' || what === 'tokens') delete this.kept.tokens;
    if (what === 'all' || what === 'verifier') delete this.kept.verifier;
    if (what === 'all' || what === 'discovery') delete this.kept.discovered;
  }
}
