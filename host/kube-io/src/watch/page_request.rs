//! Requests the pages of a list. The API server limits the number of objects in a page, but not the bytes. If a page
//! grows too large, the operator stops reading it, and asks for half as many objects.

use futures_util::{AsyncBufRead, AsyncBufReadExt as _};
use http::Request;
use kube::Client;

use super::watch_error::{WatchError, in_time};

/// The size of the pages of one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageSize {
    /// Number of objects. `None` asks for all objects at once.
    pub(super) objects: Option<u32>,
    /// Maximum number of bytes of a page with more than one object.
    pub(super) bytes: usize,
}

impl PageSize {
    /// Returns the text of the next page. If a page has too many bytes, makes this page and all later pages smaller.
    pub(super) async fn next_page(
        &mut self,
        client: &Client,
        request: impl Fn(Option<u32>) -> Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, WatchError> {
        loop {
            let request = request(self.objects).map_err(kube::Error::BuildRequest)?;
            let most = if self.objects.is_some_and(|objects| objects > 1) { self.bytes } else { usize::MAX };
            match in_time(text(client, request, most)).await?? {
                Some(text) => return Ok(text),
                None => self.objects = self.objects.map(|objects| (objects / 2).max(1)),
            }
        }
    }
}

/// Returns the text of an answer, or `None` if the text is longer than `most` bytes.
async fn text(
    client: &Client,
    request: Request<Vec<u8>>,
    most: usize,
) -> kube::Result<Result<Option<String>, WatchError>> {
    let answer = std::pin::pin!(client.request_stream(request).await?);
    Ok(read(answer, most).await)
}

async fn read(mut answer: impl AsyncBufRead + Unpin, most: usize) -> Result<Option<String>, WatchError> {
    let mut bytes = Vec::new();
    loop {
        let chunk = answer.fill_buf().await;
        let chunk = chunk.map_err(|error| {
            WatchError::Connection(format!("the connection broke during the answer to a list: {error}"))
        })?;
        if chunk.is_empty() {
            let text = String::from_utf8(bytes).map_err(|_| WatchError::odd("the answer to a list is not UTF-8"))?;
            return Ok(Some(text));
        }
        let length = chunk.len();
        if bytes.len().saturating_add(length) > most {
            return Ok(None);
        }
        bytes.extend_from_slice(chunk);
        answer.consume_unpin(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_limit() {
        let read = async |text: &'static [u8], most| read(futures_util::io::Cursor::new(text), most).await;
        assert_eq!(read(b"abc", 3).await, Ok(Some("abc".to_owned())));
        assert_eq!(read(b"abc", 2).await, Ok(None));
        assert!(read(b"\xff", 3).await.is_err());
    }
}
